#include "launch/dialects/dialect.h"
#include "launch/options/group.h"

namespace fleet {

OptionGroup start_options() {
  OptionGroup group("where it runs");
  group.texts({.key = "ips",
               .environment = {"PADDLE_IPS"},
               .value = "LIST",
               .optional = true,
               .common = true,
               .spread = true},
              "the nodes by rank: a,b[01-16],c:4 (4 GPUs), @file");
  group.flag({.key = "sort_ip", .environment = {"PADDLE_SORT_IP"}},
             "ranks follow the addresses of --ips, not its order");
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
                0, 1, 4096, "ranks here, or gpu, cpu, auto (default: 1 a GPU, or 1)");
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
             "", "where the rendezvous is, instead of the first of --ips");
  group.text({.key = "nnodes",
              .aliases = {"nnode"},
              .environment = {"PADDLE_NNODES"},
              .value = "N|MIN:MAX",
              .optional = true,
              .common = true},
             "", "how many nodes, without --ips; a range is elastic");
  group.integer({.key = "rank",
                 .aliases = {"node_rank"},
                 .environment = {"PADDLE_RANK"},
                 .value = "N",
                 .optional = true,
                 .common = true},
                -1, -1, 65535, "this node's rank, where --ips is not given");
  group.integer({.key = "start_port",
                 .environment = {"PADDLE_START_PORT", "FLAGS_START_PORT"},
                 .value = "PORT",
                 .optional = true,
                 .common = true},
                0, 0, 65535, "first endpoint port; 0: free ones (nodes: 6070)");
  group.integer({.key = "rdzv_port",
                 .environment = {"PADDLE_RDZV_PORT"},
                 .value = "PORT",
                 .optional = true,
                 .common = true},
                0, 0, 65535, "the rendezvous's port; 0: a free one (nodes: 6768)");
  group.number({.key = "rdzv_timeout",
                .environment = {"PADDLE_RDZV_TIMEOUT"},
                .value = "SECONDS",
                .common = true},
               300, 0.001, 1e6, "how long to wait for all nodes");
  group.text({.key = "job_id",
              .aliases = {"rdzv_id"},
              .environment = {"PADDLE_JOB_ID"},
              .value = "NAME",
              .common = true},
             "default", "names the job; equal on every node");
  group.texts(
      {.key = "dialect", .environment = {"PADDLE_DIALECT"}, .value = "LIST", .optional = true},
      "whose variables the ranks get: " + dialect_names() + " (default: paddle,torch)");
  group.text({.key = "via", .value = "HOW", .optional = true}, "",
             "start the job on all nodes from here (default: the same line on each)");
  group.text({.key = "via_options", .value = "TEXT", .optional = true}, "",
             "more options for the ssh or srun of --via");
  group.text({.key = "remote_fleetrun", .value = "PATH", .optional = true}, "",
             "the fleetrun of the nodes, with --via=ssh and slurm (default: this one's path)");
  group.flag({.key = "leash", .internal = true},
             "standard input is a leash: bytes are signals, its end is a SIGHUP (as --via does)");
  group.flag({.key = "part", .internal = true},
             "a node's part of a job that another fleetrun shows: no verdict here");
  return group;
}

}  // namespace fleet
