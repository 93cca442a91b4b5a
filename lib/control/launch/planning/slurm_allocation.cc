#include "launch/planning/slurm_allocation.h"

#include "base/text.h"

namespace fleet {
namespace {

// Slurm numbers its own steps from here on: a batch script, salloc's own shell.
constexpr long long kFirstOwnStep = 0xfffffff0;

}  // namespace

bool has_slurm_allocation(const EnvironmentLookup& environment) {
  return environment("SLURM_JOB_ID") && environment("SLURM_JOB_NODELIST");
}

bool in_slurm_step(const EnvironmentLookup& environment) {
  long long step = 0;
  const auto text = environment("SLURM_STEP_ID");
  return text && parse_int(*text, &step) && step < kFirstOwnStep;
}

bool in_slurm_allocation(const EnvironmentLookup& environment) {
  return has_slurm_allocation(environment) && !in_slurm_step(environment);
}

}  // namespace fleet
