#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup log_options() {
  OptionGroup group("logs");
  group.text({.key = "log_dir", .environment = {"PADDLE_LOG_DIR"}, .value = "DIR", .common = true},
             "log", "folder for workerlog.N and endpoints.log");
  group.text({.key = "ranks", .value = "LIST", .optional = true, .common = true}, "",
             "ranks to show: 0,3-5 or all (default: local rank 0)");
  group.text({.key = "local_ranks_filter", .value = "LIST", .optional = true, .common = true}, "",
             "local ranks to show: 0,3-5 or all");
  group.text({.key = "tee", .aliases = {"t"}, .value = "STREAMS", .optional = true}, "",
             "show these streams too (1: stdout, 2: stderr, 3: both; 0:3,2:1: by local rank)");
  group.text(
      {.key = "redirects", .aliases = {"redirect", "r"}, .value = "STREAMS", .optional = true}, "",
      "write these streams to the logs only; show all other streams of every rank");
  group.choice({.key = "collapse", .value = "WHEN", .optional = true}, "auto",
               {"auto", "on", "off"},
               "show equal lines of several ranks once (auto: on a terminal) (default: auto)");
  group.choice({.key = "timestamps", .value = "WHERE", .optional = true}, "none",
               {"none", "console", "files", "all"},
               "print the time before each line (default: none)");
  group.choice({.key = "slow_console", .value = "HOW", .optional = true}, "auto",
               {"auto", "wait", "drop"},
               "if the console is slow, make ranks wait, or drop and count lines (auto: drop on a "
               "terminal) (default: auto)");
  group.flag({.key = "log_overwrite", .environment = {"PADDLE_LOG_OVERWRITE"}},
             "remove the logs of earlier runs instead of appending to them");
  group.flag({.key = "log_split"}, "write standard error to workerlog.N.err");
  group.text(
      {.key = "log_max_size", .value = "SIZE", .optional = true}, "",
      "rotate a log at this size, as in 100M or 2G (workerlog.N.1 ...) (default: unlimited)");
  group.text({.key = "log_total_size", .value = "SIZE", .optional = true}, "",
             "total size of this node's logs: remove the oldest rotated ones beyond it (default: "
             "unlimited)");
  group.choice(
      {.key = "log_level", .environment = {"PADDLE_LOG_LEVEL"}, .value = "LEVEL", .common = true},
      "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"}, "least severity to log");
  return group;
}

}  // namespace fleet
