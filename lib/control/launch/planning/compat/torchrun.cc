// torchrun's options without a counterpart here; the others are in
// launch/planning/options/torch.cc.
#include "launch/planning/compat/line.h"

namespace fleet {

CompatGroup torchrun_options() {
  CompatGroup group("torchrun");
  group.abbreviates = true;
  group.ignored({"--monitor_interval"}, "SECONDS", "fleetrun notices the end of a rank at once");
  group.ignored({"--start_method"}, "NAME", "fleetrun starts programs, not functions");
  group.ignored({"--event_log_handler"}, "NAME", "verdict.json records how a job ended");
  group.ignored({"--use_env"}, "", "ranks always have LOCAL_RANK");
  group.refused({"--logs_specs"}, "NAME",
                "log plugins are Python code, which fleetrun does not run",
                "use --log_dir, --redirects and --tee");
  for (const char* flag : {"--nnodes",
                           "--nproc_per_node",
                           "--rdzv_backend",
                           "--rdzv_endpoint",
                           "--rdzv_id",
                           "--rdzv_conf",
                           "--standalone",
                           "--max_restarts",
                           "--role",
                           "--module",
                           "--no_python",
                           "--run_path",
                           "--log_dir",
                           "--redirects",
                           "--tee",
                           "--log_line_prefix_template",
                           "--local_ranks_filter",
                           "--duplicate_stdout_filters",
                           "--duplicate_stderr_filters",
                           "--node_rank",
                           "--master_addr",
                           "--master_port",
                           "--local_addr",
                           "--numa_binding",
                           "--signals_to_handle",
                           "--shutdown_timeout",
                           "--virtual_local_rank",
                           "--print_completion",
                           "--help"}) {
    group.also({flag});
  }
  return group;
}

}  // namespace fleet
