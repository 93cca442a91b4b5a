#include "launch/planning/options.h"

namespace fleet {

OptionGroup supervise_options() {
  OptionGroup group("supervision and restarts");
  group.number(
      paddle({.key = "grace", .aliases = {"shutdown_timeout"}, .value = "SECONDS", .common = true}),
      10, 0, 1e6, "seconds from the stop signal to SIGKILL");
  group.number(
      paddle({.key = "hang_timeout", .value = "SECONDS", .optional = true, .common = true}), 0, 0,
      1e6, "idle seconds that count as a hang (default: off)");
  group.integer(paddle({.key = "max_restart",
                        .aliases = {"max_restarts"},
                        .value = "N",
                        .optional = true,
                        .common = true}),
                0, 0, 1e6, "restarts after a failure (default: 0; elastic: 3)");
  group.number(
      paddle({.key = "elastic_timeout", .value = "SECONDS"}), 30, 0, 1e6,
      "seconds that a restart waits for missing nodes, or for more nodes of a MIN:MAX range");
  group.integer({.key = "no_progress_restarts", .value = "N"}, 3, 0, 1e6,
                "end the job after this many restarts in a row without progress; 0: never");
  group.integer(paddle({.key = "elastic_level", .value = "LEVEL", .optional = true}), -1, -1, 1,
                "Paddle's switch: 1 allows restarts, -1 forbids them");
  group.number(paddle({.key = "heartbeat_timeout", .value = "SECONDS"}), 15, 0.5, 3600,
               "seconds within which a lost node is detected");
  group.text(
      paddle({.key = "on_end", .value = "COMMAND", .optional = true}), "",
      "shell command to run once after the job has ended, with verdict.json as its standard input");
  group.text({.key = "metrics", .value = "ADDR:PORT", .optional = true}, "",
             "serve the state of this node's ranks to Prometheus at this address (default: off)");
  group.text({.key = "metrics_token_file", .value = "FILE", .optional = true}, "",
             "file with the token that a reader of --metrics must send (Authorization: Bearer)");
  return group;
}

}  // namespace fleet
