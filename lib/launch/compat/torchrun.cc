// What torchrun has and nothing here: the rest is in launch/options/torch.cc.
#include "launch/compat/option.h"

namespace fleet {

std::vector<CompatOption> torchrun_options() {
  return {
      {.of = "torchrun",
       .flags = {"--monitor_interval"},
       .value = "SECONDS",
       .idle = "the end of a rank is seen at once"},
      {.of = "torchrun",
       .flags = {"--start_method"},
       .value = "NAME",
       .idle = "programs are started, not functions"},
      {.of = "torchrun",
       .flags = {"--event_log_handler"},
       .value = "NAME",
       .idle = "verdict.json tells how a job ended"},
      {.of = "torchrun", .flags = {"--use_env"}, .idle = "ranks always have LOCAL_RANK"},
      {.of = "torchrun",
       .flags = {"--logs_specs"},
       .value = "NAME",
       .refused = "plugins for logs are Python code, which does not run here",
       .next = "use --log_dir, --redirects and --tee"},
  };
}

}  // namespace fleet
