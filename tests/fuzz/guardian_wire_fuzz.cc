// What the launcher and its guardian say to each other.
#include "node/wire.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(guardian_wire) {
  std::string buffer(bytes);
  fleet::WireMessage message;
  while (fleet::decode(buffer, &message)) {
    std::string again = fleet::encode(message);
    fleet::WireMessage same;
    fleet::fuzz::require(fleet::decode(again, &same) && again.empty() && same == message,
                         "a message that was decoded can be sent");
  }
}
