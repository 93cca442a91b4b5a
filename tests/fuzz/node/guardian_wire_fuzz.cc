// Messages between the launcher and its guardian.
#include "tests/fuzz/frames.h"

// "c": commands, else events; then the frames.
FLEET_FUZZ(guardian_wire) {
  const auto ignore = [](const auto&) {};
  fleet::fuzz::take_byte(&bytes) == 'c'
      ? fleet::fuzz::take_frames<fleet::wire::GuardianCommand>(std::string(bytes), ignore)
      : fleet::fuzz::take_frames<fleet::wire::GuardianEvent>(std::string(bytes), ignore);
}
