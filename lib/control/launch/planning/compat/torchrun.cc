// torchrun's options without a counterpart here; the others are in
// launch/planning/options/torch.cc.
#include "launch/planning/compat/option.h"

namespace fleet {

std::vector<CompatOption> torchrun_options() {
  return {
      {.of = "torchrun",
       .flags = {"--monitor_interval"},
       .value = "SECONDS",
       .ignored = "fleetrun notices the end of a rank at once"},
      {.of = "torchrun",
       .flags = {"--start_method"},
       .value = "NAME",
       .ignored = "fleetrun starts programs, not functions"},
      {.of = "torchrun",
       .flags = {"--event_log_handler"},
       .value = "NAME",
       .ignored = "verdict.json records how a job ended"},
      {.of = "torchrun", .flags = {"--use_env"}, .ignored = "ranks always have LOCAL_RANK"},
      {.of = "torchrun",
       .flags = {"--logs_specs"},
       .value = "NAME",
       .refused = "log plugins are Python code, which fleetrun does not run",
       .next = "use --log_dir, --redirects and --tee"},
  };
}

}  // namespace fleet
