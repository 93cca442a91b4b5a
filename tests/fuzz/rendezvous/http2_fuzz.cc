// Data of strangers that reaches the rendezvous before gRPC (--insecure): the preface and frames.
#include "rendezvous/http2_limiter.h"
#include "tests/fuzz/fuzz.h"

// 'g': as a client that has greeted. Then pieces with a byte before each: its length, who sends it,
// and whether a second has passed.
FLEET_FUZZ(http2) {
  constexpr std::string_view kGreeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr size_t kMayOpen = 4;
  fleet::Http2Limits limits;
  fleet::Http2Limiter::Time now{};
  fleet::Http2Limiter limiter(limits, now);
  if (fleet::fuzz::take_byte(&bytes) == 'g') limiter.client_sent(kGreeting, 0, now);
  while (!bytes.empty()) {
    const uint8_t head = fleet::fuzz::take_byte(&bytes);
    std::string_view piece = bytes.substr(0, 1 + (head & 63));
    bytes.remove_prefix(piece.size());
    if (head & 128) now += std::chrono::seconds(1);
    if (head & 64) {
      limiter.server_sent(piece);
      continue;
    }
    const uint64_t before = limiter.opened();
    const auto read = limiter.client_sent(piece, kMayOpen, now);
    if (read.error) return;
    fleet::fuzz::require(read.consumed <= piece.size(), "no more is consumed than there is");
    fleet::fuzz::require(limiter.opened() - before <= kMayOpen, "no more streams open than may");
    fleet::fuzz::require(limiter.open_streams() <= limiter.opened(), "open streams were opened");
    fleet::fuzz::require(limiter.partial_bytes() <= limiter.open_streams() * limits.message_bytes,
                         "only open streams have parts of messages");
    fleet::fuzz::require(limiter.oldest_partial().has_value() == (limiter.partial_bytes() > 0),
                         "a part of a message has an age");
  }
}
