// The number of nodes of a line of srun that gives only numbers of ranks.
#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/line.h"

namespace fleet {

bool translate_srun_counts(int total, CompatLine& line) {
  const std::string per_node = line.own_option("nproc_per_node").value_or("");
  long long each = 0;
  if (!line.uses_launcher("srun") || line.own_option("nnodes") || get_env("SLURM_STEP_NUM_NODES") ||
      !parse_int(per_node, &each) || each < 1 || total <= each || total % each != 0) {
    return false;
  }
  translate_srun_nodes(std::to_string(total / each), line);
  return true;
}

}  // namespace fleet
