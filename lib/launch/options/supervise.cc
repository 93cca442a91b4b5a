#include "launch/options/group.h"

namespace fleet {

OptionGroup supervise_options() {
  OptionGroup group("watching and ending");
  group.number({.key = "grace",
                .aliases = {"shutdown_timeout"},
                .environment = {"PADDLE_GRACE"},
                .value = "SECONDS",
                .common = true},
               10, 0, 1e6, "from a stop's signal to SIGKILL");
  group.number({.key = "hang_timeout",
                .environment = {"PADDLE_HANG_TIMEOUT"},
                .value = "SECONDS",
                .optional = true,
                .common = true},
               0, 0, 1e6, "a rank that does nothing for so long hangs (off)");
  group.integer({.key = "max_restart",
                 .aliases = {"max_restarts"},
                 .environment = {"PADDLE_MAX_RESTART"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 0, 1e6, "restarts of all ranks after a failure (0; elastic: 3)");
  group.number(
      {.key = "elastic_timeout", .environment = {"PADDLE_ELASTIC_TIMEOUT"}, .value = "SECONDS"}, 30,
      0, 1e6, "how long a restart waits for nodes, or for more of a range");
  group.integer({.key = "no_progress_restarts", .value = "N"}, 3, 0, 1e6,
                "end after so many restarts in a row that came no further; 0: never");
  group.integer({.key = "elastic_level",
                 .environment = {"PADDLE_ELASTIC_LEVEL"},
                 .value = "LEVEL",
                 .optional = true},
                -1, -1, 1, "Paddle's: 1 allows restarts, -1 does not");
  group.number(
      {.key = "heartbeat_timeout", .environment = {"PADDLE_HEARTBEAT_TIMEOUT"}, .value = "SECONDS"},
      3, 0.5, 3600, "a node that vanishes is seen within so long");
  return group;
}

}  // namespace fleet
