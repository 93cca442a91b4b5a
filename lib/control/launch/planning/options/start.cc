#include "launch/planning/dialects/dialect.h"
#include "launch/planning/options.h"

namespace fleet {

OptionGroup start_options() {
  OptionGroup group("nodes, devices and ranks");
  group.texts(
      paddle({.key = "ips", .value = "LIST", .optional = true, .common = true, .spread = true}),
      "nodes in rank order: a,b[01-16],c:4 (4 GPUs), @file");
  group.flag(paddle({.key = "sort_ip"}),
             "sort the nodes by address instead of keeping the order of --ips");
  group.text({.key = "gpus",
              .aliases = {"selected_gpus", "devices"},
              .environment = {"PADDLE_DEVICES", "PADDLE_GPUS"},
              .value = "LIST",
              .optional = true,
              .common = true},
             "", "GPUs of this node to use (default: all visible)");
  group.integer(paddle({.key = "nproc_per_node", .value = "N", .optional = true, .common = true}),
                0, 1, 4096, "ranks here, or gpu|cpu|auto (default: 1 per GPU, or 1)");
  group.text(paddle({.key = "host", .value = "ADDR", .optional = true, .common = true}, {"POD_IP"}),
             "", "this node's address; with --ips, as listed there");
  group.text(paddle({.key = "master", .value = "ADDR:PORT", .optional = true, .common = true}), "",
             "rendezvous address (default: the first of --ips)");
  group.text(paddle({.key = "nnodes",
                     .aliases = {"nnode"},
                     .value = "N|MIN:MAX",
                     .optional = true,
                     .common = true}),
             "", "number of nodes, instead of --ips; MIN:MAX is elastic");
  group.integer(paddle({.key = "rank",
                        .aliases = {"node_rank"},
                        .value = "N",
                        .optional = true,
                        .common = true}),
                -1, -1, 65535, "this node's rank, if --ips is not given");
  group.integer(paddle({.key = "start_port", .value = "PORT", .optional = true, .common = true},
                       {"FLAGS_START_PORT"}),
                0, 0, 65535, "first endpoint port; 0: any (default: 6070; 1 node: 0)");
  group.integer(paddle({.key = "rdzv_port", .value = "PORT", .optional = true, .common = true}), 0,
                0, 65535, "rendezvous port; 0: any (default: 6768; 1 node: 0)");
  group.number(paddle({.key = "rdzv_timeout", .value = "SECONDS", .common = true}), 300, 0.001, 1e6,
               "seconds to wait for all nodes to join");
  group.text(paddle({.key = "job_id", .aliases = {"rdzv_id"}, .value = "NAME", .common = true}),
             "default", "job name, the same on every node");
  group.texts(paddle({.key = "dialect", .value = "LIST", .optional = true}),
              "launchers whose environment variables the ranks get: " + dialect_names() +
                  " (default: paddle,torch)");
  group.text({.key = "via", .value = "HOW", .optional = true}, "",
             "start fleetrun on all nodes from here, with fleetd, ssh or slurm (default: you start "
             "fleetrun on each node)");
  group.text({.key = "via_options", .value = "TEXT", .optional = true}, "",
             "more options for the ssh or srun that --via runs");
  group.text(
      {.key = "remote_fleetrun", .value = "PATH", .optional = true}, "",
      "path of fleetrun on the nodes, for --via=ssh and slurm (default: path of this fleetrun)");
  group.flag({.key = "control_pipe", .internal = true},
             "read signals from standard input, the control pipe of --via: each byte is a signal, "
             "end of file is SIGHUP");
  group.flag({.key = "part", .internal = true},
             "run one node's part of a job that another fleetrun shows; print no verdict");
  return group;
}

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
             "working directory on the nodes (default: the current one)");
  group.texts(
      {.key = "export", .value = "LIST", .optional = true},
      "variables for the ranks: NAME=VALUE; NAME or PREFIX* passes local values to other nodes");
  group.text({.key = "user", .value = "NAME", .optional = true}, "",
             "user that runs the fleetds of the nodes (default: you)");
  return group;
}

}  // namespace fleet
