#include "launch/options/group.h"

namespace fleet {

OptionGroup log_options() {
  OptionGroup group("logs");
  group.text({.key = "log_dir", .environment = {"PADDLE_LOG_DIR"}, .value = "DIR", .common = true},
             "log", "folder of workerlog.N and endpoints.log");
  group.text({.key = "ranks", .value = "LIST", .optional = true, .common = true}, "",
             "ranks to show, 0,3-5 or all (default: local rank 0 of each node)");
  group.text({.key = "local_ranks_filter", .value = "LIST", .optional = true, .common = true}, "",
             "the same by local ranks");
  group.choice(
      {.key = "log_level", .environment = {"PADDLE_LOG_LEVEL"}, .value = "LEVEL", .common = true},
      "INFO", {"DEBUG", "INFO", "WARNING", "ERROR"}, "how much is logged");
  return group;
}

}  // namespace fleet
