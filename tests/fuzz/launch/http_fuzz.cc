// Requests to Horovod's key-value server.
#include "tests/fuzz/fuzz.h"
#include "transport/http_message.h"

// The length of the pieces, and the request.
FLEET_FUZZ(http) {
  using State = fleet::HttpReader::State;
  const size_t piece = 1 + fleet::fuzz::take_byte(&bytes) % 64;
  fleet::HttpReader whole, cut;
  const State state = whole.add(bytes);
  State other = State::kMore;
  for (; !bytes.empty() && other == State::kMore;
       bytes.remove_prefix(std::min(piece, bytes.size()))) {
    other = cut.add(bytes.substr(0, piece));
  }
  // A request that is too large may be refused before its end has come.
  if (state == State::kWhole && other == State::kWhole) {
    fleet::fuzz::require(whole.request() == cut.request(),
                         "it does not matter how a request is cut into pieces");
    fleet::http_response(200, whole.request().body);
  }
}
