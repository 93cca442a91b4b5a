// Whether this process may start the tasks of a Slurm job.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace fleet {

using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

bool has_slurm_allocation(const EnvironmentLookup& environment);
// A step that the user started; not a batch script or salloc's shell.
bool in_slurm_step(const EnvironmentLookup& environment);
// Whether this process is in a Slurm allocation, and not in a step that cannot start others.
bool in_slurm_allocation(const EnvironmentLookup& environment);

}  // namespace fleet
