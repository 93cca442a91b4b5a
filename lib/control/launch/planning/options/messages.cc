#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup message_options() {
  OptionGroup group("launcher output");
  group.flag({.key = "quiet", .aliases = {"q"}, .environment = {"PADDLE_QUIET"}, .common = true},
             "print only program output, warnings and failures");
  group.choice({.key = "table", .environment = {"PADDLE_TABLE"}, .value = "HOW", .optional = true},
               "auto", {"auto", "paddle", "narrow", "none"},
               "style of the environment table (auto: paddle, or narrow on a narrow terminal) "
               "(default: auto)");
  return group;
}

}  // namespace fleet
