#include "launch/compat/option.h"

namespace fleet {

std::vector<CompatOption> torchrun_options() {
  return {
      {.of = "torchrun",
       .flags = {"--rdzv_backend"},
       .value = "NAME",
       .refused = "the rendezvous is built in",
       .next = "--master says where it is"},
      {.of = "torchrun",
       .flags = {"--rdzv_endpoint"},
       .value = "ADDR:PORT",
       .refused = "the rendezvous is built in",
       .next = "give its address with --master"},
      {.of = "torchrun",
       .flags = {"--rdzv_id"},
       .value = "NAME",
       .refused = "jobs are told apart by --job_id",
       .next = "give the name with that"},
      {.of = "torchrun",
       .flags = {"--standalone"},
       .idle = "a job on one node needs no option for that"},
  };
}

}  // namespace fleet
