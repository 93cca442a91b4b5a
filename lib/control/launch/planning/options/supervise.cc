#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup supervise_options() {
  OptionGroup group("supervision and restarts");
  group.number({.key = "grace",
                .aliases = {"shutdown_timeout"},
                .environment = {"PADDLE_GRACE"},
                .value = "SECONDS",
                .common = true},
               10, 0, 1e6, "seconds from the stop signal to SIGKILL");
  group.number({.key = "hang_timeout",
                .environment = {"PADDLE_HANG_TIMEOUT"},
                .value = "SECONDS",
                .optional = true,
                .common = true},
               0, 0, 1e6, "idle seconds after which a rank is hung (default: off)");
  group.integer({.key = "max_restart",
                 .aliases = {"max_restarts"},
                 .environment = {"PADDLE_MAX_RESTART"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 0, 1e6, "restarts after a failure (default: 0; elastic: 3)");
  group.number(
      {.key = "elastic_timeout", .environment = {"PADDLE_ELASTIC_TIMEOUT"}, .value = "SECONDS"}, 30,
      0, 1e6, "seconds that a restart waits for nodes, or for more nodes of a range");
  group.integer({.key = "no_progress_restarts", .value = "N"}, 3, 0, 1e6,
                "end after this many restarts in a row without progress; 0: never");
  group.integer({.key = "elastic_level",
                 .environment = {"PADDLE_ELASTIC_LEVEL"},
                 .value = "LEVEL",
                 .optional = true},
                -1, -1, 1, "Paddle's switch: 1 allows restarts, -1 forbids them");
  group.number(
      {.key = "heartbeat_timeout", .environment = {"PADDLE_HEARTBEAT_TIMEOUT"}, .value = "SECONDS"},
      3, 0.5, 3600, "seconds within which a lost node is detected");
  return group;
}

}  // namespace fleet
