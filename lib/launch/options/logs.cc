#include "launch/options/group.h"

namespace fleet {

OptionGroup log_options() {
  OptionGroup group("logs");
  group.text({.key = "log_dir", .environment = {"PADDLE_LOG_DIR"}, .value = "DIR", .common = true},
             "log", "folder of workerlog.N and endpoints.log");
  group.text({.key = "ranks", .value = "LIST", .optional = true, .common = true}, "",
             "ranks to show: 0,3-5 or all (each node's local rank 0)");
  group.text({.key = "local_ranks_filter", .value = "LIST", .optional = true, .common = true}, "",
             "the same by local ranks");
  group.text({.key = "tee", .aliases = {"t"}, .value = "STREAMS", .optional = true}, "",
             "show these as well (1: output, 2: error, 3: both; 0:3,2:1: by local rank)");
  group.text(
      {.key = "redirects", .aliases = {"redirect", "r"}, .value = "STREAMS", .optional = true}, "",
      "do not show these: they go to the logs only; the rest of every rank is shown");
  group.choice({.key = "collapse", .value = "WHEN", .optional = true}, "auto",
               {"auto", "on", "off"},
               "equal lines of several ranks are shown once (auto: on a terminal)");
  group.choice({.key = "timestamps", .value = "WHERE", .optional = true}, "none",
               {"none", "console", "files", "all"}, "the time before each line");
  group.choice({.key = "slow_console", .value = "HOW", .optional = true}, "auto",
               {"auto", "wait", "drop"},
               "ranks wait for it, or lines are dropped and counted (auto: on a terminal)");
  group.flag({.key = "log_overwrite", .environment = {"PADDLE_LOG_OVERWRITE"}},
             "logs of earlier runs are removed; else they are appended to");
  group.flag({.key = "log_split"}, "standard error goes to workerlog.N.err");
  group.text({.key = "log_max_size", .value = "SIZE", .optional = true}, "",
             "a log of this size is closed (workerlog.N.1 ...), another begun: 100M, 2G");
  group.text({.key = "log_total_size", .value = "SIZE", .optional = true}, "",
             "all logs of this node together: then the oldest closed ones are removed");
  group.choice(
      {.key = "log_level", .environment = {"PADDLE_LOG_LEVEL"}, .value = "LEVEL", .common = true},
      "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"}, "how much is logged");
  return group;
}

}  // namespace fleet
