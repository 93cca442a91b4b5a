// For the targets of framed messages.
#pragma once

#include <string>
#include <utility>

#include "node/channel.h"
#include "tests/fuzz/fuzz.h"

namespace fleet::fuzz {

// Takes all frames from `bytes`, and calls use(message) with each. Each must survive being sent
// again.
template <typename Message, typename Use>
void take_frames(std::string bytes, Use use) {
  Message message, same;
  while (take_frame(bytes, &message)) {
    const std::string sent = frame(message);
    std::string again = sent;
    require(take_frame(again, &same) && again.empty() && frame(same) == sent,
            "a message that was decoded can be sent");
    use(std::as_const(message));
  }
}

}  // namespace fleet::fuzz
