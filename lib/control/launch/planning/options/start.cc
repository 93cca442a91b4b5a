#include "launch/planning/dialects/dialect.h"
#include "launch/planning/options/group.h"

namespace fleet {

OptionGroup start_options() {
  OptionGroup group("nodes, devices and ranks");
  group.texts({.key = "ips",
               .environment = {"PADDLE_IPS"},
               .value = "LIST",
               .optional = true,
               .common = true,
               .spread = true},
              "nodes in rank order: a,b[01-16],c:4 (4 GPUs), @file");
  group.flag({.key = "sort_ip", .environment = {"PADDLE_SORT_IP"}},
             "order nodes by address instead of by their place in --ips");
  group.text({.key = "gpus",
              .aliases = {"selected_gpus", "devices"},
              .environment = {"PADDLE_DEVICES", "PADDLE_GPUS"},
              .value = "LIST",
              .optional = true,
              .common = true},
             "", "GPUs of this node to use (default: all visible)");
  group.integer({.key = "nproc_per_node",
                 .environment = {"PADDLE_NPROC_PER_NODE"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                0, 1, 4096, "ranks here, or gpu|cpu|auto (default: 1 per GPU, or 1)");
  group.text({.key = "host",
              .aliases = {"local_addr"},
              .environment = {"PADDLE_HOST", "POD_IP"},
              .value = "ADDR",
              .optional = true,
              .common = true},
             "", "this node's address, as in --ips");
  group.text({.key = "master",
              .environment = {"PADDLE_MASTER"},
              .value = "ADDR:PORT",
              .optional = true,
              .common = true},
             "", "rendezvous address (default: the first of --ips)");
  group.text({.key = "nnodes",
              .aliases = {"nnode"},
              .environment = {"PADDLE_NNODES"},
              .value = "N|MIN:MAX",
              .optional = true,
              .common = true},
             "", "number of nodes without --ips; MIN:MAX is elastic");
  group.integer({.key = "rank",
                 .aliases = {"node_rank"},
                 .environment = {"PADDLE_RANK"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                -1, -1, 65535, "this node's rank, without --ips");
  group.integer({.key = "start_port",
                 .environment = {"PADDLE_START_PORT", "FLAGS_START_PORT"},
                 .value = "PORT",
                 .optional = true,
                 .common = true},
                0, 0, 65535, "first endpoint port; 0: any (default: 6070; 1 node: 0)");
  group.integer({.key = "rdzv_port",
                 .environment = {"PADDLE_RDZV_PORT"},
                 .value = "PORT",
                 .optional = true,
                 .common = true},
                0, 0, 65535, "rendezvous port; 0: any (default: 6768; 1 node: 0)");
  group.number({.key = "rdzv_timeout",
                .environment = {"PADDLE_RDZV_TIMEOUT"},
                .value = "SECONDS",
                .common = true},
               300, 0.001, 1e6, "seconds to wait for all nodes to join");
  group.text({.key = "job_id",
              .aliases = {"rdzv_id"},
              .environment = {"PADDLE_JOB_ID"},
              .value = "NAME",
              .common = true},
             "default", "job name, the same on every node");
  group.texts(
      {.key = "dialect", .environment = {"PADDLE_DIALECT"}, .value = "LIST", .optional = true},
      "launchers whose environment variables the ranks get: " + dialect_names() +
          " (default: paddle,torch)");
  group.text(
      {.key = "via", .value = "HOW", .optional = true}, "",
      "start all nodes from here: fleetd, ssh or slurm (default: you start fleetrun on each node)");
  group.text({.key = "via_options", .value = "TEXT", .optional = true}, "",
             "more options for the ssh or srun that --via runs");
  group.text(
      {.key = "remote_fleetrun", .value = "PATH", .optional = true}, "",
      "path of fleetrun on the nodes, for --via=ssh and slurm (default: path of this fleetrun)");
  // --leash: the name that a client of version 0.1 uses.
  group.flag({.key = "control_pipe", .aliases = {"leash"}, .internal = true},
             "read signals from standard input, the control pipe of --via: each byte is a signal, "
             "end of file is SIGHUP");
  group.flag({.key = "part", .internal = true},
             "run one node's part of a job that another fleetrun shows; print no verdict");
  return group;
}

}  // namespace fleet
