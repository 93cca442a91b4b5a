#include "launch/options/group.h"

namespace fleet {

OptionGroup screen_options() {
  OptionGroup group("what it says");
  group.flag({.key = "quiet", .aliases = {"q"}, .environment = {"PADDLE_QUIET"}, .common = true},
             "print only the program's output, warnings and failures");
  group.choice({.key = "table", .environment = {"PADDLE_TABLE"}, .value = "HOW", .optional = true},
               "auto", {"auto", "paddle", "narrow", "none"},
               "the environment table (auto: Paddle's, narrow where the terminal is)");
  return group;
}

}  // namespace fleet
