// torchrun's options without a counterpart here; the others are in
// launch/planning/options/torch.cc.
#include "launch/planning/compat/line.h"

namespace fleet {

CompatGroup torchrun_options() {
  CompatGroup group("torchrun");
  group.ignored({"--monitor_interval"}, "SECONDS", "fleetrun notices the end of a rank at once");
  group.ignored({"--start_method"}, "NAME", "fleetrun starts programs, not functions");
  group.ignored({"--event_log_handler"}, "NAME", "verdict.json records how a job ended");
  group.ignored({"--use_env"}, "", "ranks always have LOCAL_RANK");
  group.refused({"--logs_specs"}, "NAME",
                "log plugins are Python code, which fleetrun does not run",
                "use --log_dir, --redirects and --tee");
  return group;
}

}  // namespace fleet
