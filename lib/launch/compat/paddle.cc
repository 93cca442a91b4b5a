#include "launch/compat/option.h"

namespace fleet {

std::vector<CompatOption> paddle_options() {
  const std::string heterogeneous = "heterogeneous parameter servers are not supported";
  const std::string no_etcd = "elastic jobs need no etcd";
  const std::string range = "give --nnodes=MIN:MAX and --max_restart";
  return {
      {.of = "Paddle", .flags = {"--heter_workers"}, .value = "LIST", .refused = heterogeneous},
      {.of = "Paddle", .flags = {"--heter_worker_num"}, .value = "N", .refused = heterogeneous},
      {.of = "Paddle", .flags = {"--heter_devices"}, .value = "LIST", .refused = heterogeneous},
      {.of = "Paddle",
       .flags = {"--elastic_server"},
       .value = "ADDR",
       .refused = no_etcd,
       .next = range},
      {.of = "Paddle", .flags = {"--np"}, .value = "N", .refused = no_etcd, .next = range},
      {.of = "Paddle", .flags = {"--scale"}, .value = "N", .refused = no_etcd, .next = range},
      {.of = "Paddle", .flags = {"--force"}, .value = "BOOL", .refused = no_etcd, .next = range},
      {.of = "Paddle",
       .flags = {"--backend"},
       .value = "NAME",
       .refused = "the transport is chosen from where the ranks are, or by the job file"},
      {.of = "Paddle", .flags = {"--sort_ip"}, .refused = "ranks follow the order of --ips"},
      {.of = "Paddle",
       .flags = {"--elastic_pre_hook"},
       .value = "COMMAND",
       .refused = "no program is run before a restart",
       .next = "do it in the ranks' program"},
  };
}

}  // namespace fleet
