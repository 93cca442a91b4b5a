// What Slurm's srun takes: for CompatOption::translate.
#pragma once

#include <string>

#include "launch/compat/line.h"

namespace fleet {

// A word for srun: in an allocation --via=slurm passes it on; elsewhere it is refused, and the
// corrected line has fleetrun within srun.
void give_to_srun(const std::string& word, CompatLine& line);
void translate_srun_nodes(const std::string& value, CompatLine& line);

}  // namespace fleet
