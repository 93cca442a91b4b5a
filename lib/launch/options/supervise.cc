#include "launch/options/group.h"

namespace fleet {

OptionGroup supervise_options() {
  OptionGroup group("watching and ending");
  group.number(
      {.key = "grace", .environment = {"PADDLE_GRACE"}, .value = "SECONDS", .common = true}, 10, 0,
      1e6, "from a stop's signal to SIGKILL");
  group.number({.key = "hang_timeout",
                .environment = {"PADDLE_HANG_TIMEOUT"},
                .value = "SECONDS",
                .optional = true,
                .common = true},
               0, 0, 1e6, "a rank that does nothing for so long hangs (off)");
  return group;
}

}  // namespace fleet
