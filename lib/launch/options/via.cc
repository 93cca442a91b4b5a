#include "launch/options/group.h"

namespace fleet {

OptionGroup via_options() {
  OptionGroup group("from elsewhere, with --via=fleetd");
  group.integer(
      {.key = "fleetd_port", .environment = {"FLEETD_PORT"}, .value = "PORT", .optional = true},
      6767, 1, 65535, "where every node's fleetd listens (default: 6767)");
  group.text({.key = "fleetd_secret_file", .value = "FILE", .optional = true}, "",
             "the fleetds' secret (default: FLEETD_SECRET, ~/.config/fleetrun/fleetd.secret)");
  group.flag({.key = "detach"}, "leave once the job runs; see fleetrun ls, status, logs, stop");
  group.flag({.key = "share_gpus"}, "also use GPUs that other jobs have");
  group.text({.key = "chdir", .value = "DIR", .optional = true}, "",
             "the nodes' working directory (default: this one)");
  group.texts({.key = "export", .value = "LIST", .optional = true},
              "variables for the ranks: NAME=VALUE; of here, for other nodes: NAME or PREFIX*");
  group.text({.key = "user", .value = "NAME", .optional = true}, "",
             "whom the nodes' fleetds run as (default: you)");
  return group;
}

}  // namespace fleet
