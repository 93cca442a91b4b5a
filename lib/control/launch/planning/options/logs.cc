#include "launch/planning/options.h"

namespace fleet {

OptionGroup log_options() {
  OptionGroup group("logs");
  group.text(paddle({.key = "log_dir", .value = "DIR", .common = true}), "log",
             "folder for workerlog.N and endpoints.log");
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
               "show identical lines of several ranks once (auto: on a terminal) (default: auto)");
  group.choice({.key = "timestamps", .value = "WHERE", .optional = true}, "none",
               {"none", "console", "files", "all"},
               "print the time before each line (default: none)");
  group.choice({.key = "slow_console", .value = "HOW", .optional = true}, "auto",
               {"auto", "wait", "drop"},
               "if the console is slow, make the ranks wait, or drop and count lines (auto: drop "
               "on a terminal, else wait) (default: auto)");
  group.flag(paddle({.key = "log_overwrite"}),
             "remove the logs of earlier runs instead of appending to them");
  group.flag({.key = "log_split"}, "write standard error to workerlog.N.err");
  group.text(
      {.key = "log_max_size", .value = "SIZE", .optional = true}, "",
      "rotate a log at this size, such as 100M or 2G (workerlog.N.1, ...) (default: unlimited)");
  group.text({.key = "log_total_size", .value = "SIZE", .optional = true}, "",
             "limit for the total size of this node's logs; beyond it, the oldest rotated logs are "
             "removed (default: unlimited)");
  group.choice(paddle({.key = "log_level", .value = "LEVEL", .common = true}), "INFO",
               {"DEBUG", "INFO", "WARNING", "ERROR"}, "minimum severity to log");
  return group;
}

OptionGroup message_options() {
  OptionGroup group("launcher output");
  group.flag(paddle({.key = "quiet", .aliases = {"q"}, .common = true}),
             "print only program output, warnings and failures");
  group.choice(paddle({.key = "table", .value = "HOW", .optional = true}), "auto",
               {"auto", "paddle", "narrow", "none"},
               "print the environment table, in this style (auto: paddle, or narrow on a narrow "
               "terminal) (default: auto for job files and Paddle's scripts and options, else "
               "none)");
  return group;
}

}  // namespace fleet
