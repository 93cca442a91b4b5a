// Messages between the launcher and its guardian.
#include "node/channel.h"
#include "tests/fuzz/fuzz.h"

template <typename Message>
static void take_all(std::string bytes) {
  Message message, same;
  while (fleet::take_frame(bytes, &message)) {
    const std::string sent = fleet::frame(message);
    std::string again = sent;
    fleet::fuzz::require(
        fleet::take_frame(again, &same) && again.empty() && fleet::frame(same) == sent,
        "a message that was decoded can be sent");
  }
}

// "c": commands, else events; then the frames.
FLEET_FUZZ(guardian_wire) {
  fleet::fuzz::take_byte(&bytes) == 'c' ? take_all<fleet::wire::GuardianCommand>(std::string(bytes))
                                        : take_all<fleet::wire::GuardianEvent>(std::string(bytes));
}
