#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup via_options() {
  OptionGroup group("remote start with --via=fleetd");
  group.integer(
      {.key = "fleetd_port", .environment = {"FLEETD_PORT"}, .value = "PORT", .optional = true},
      6767, 1, 65535, "port of every node's fleetd (default: 6767)");
  group.text({.key = "fleetd_secret_file", .value = "FILE", .optional = true}, "",
             "file with the secret of the fleetds (default: FLEETD_SECRET, "
             "~/.config/fleetrun/fleetd.secret)");
  group.flag({.key = "detach"}, "exit once the job runs; see fleetrun ls, status, logs, stop");
  group.flag({.key = "share_gpus"}, "also use GPUs that other jobs occupy");
  group.text({.key = "chdir", .value = "DIR", .optional = true}, "",
             "working directory on the nodes (default: this one)");
  group.texts(
      {.key = "export", .value = "LIST", .optional = true},
      "variables for the ranks: NAME=VALUE; NAME or PREFIX* passes local values to other nodes");
  group.text({.key = "user", .value = "NAME", .optional = true}, "",
             "user that runs the fleetds of the nodes (default: you)");
  return group;
}

}  // namespace fleet
