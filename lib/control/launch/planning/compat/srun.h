// Translation of srun's options, for CompatOption::translate.
#pragma once

#include <string>

#include "launch/planning/compat/line.h"

namespace fleet {

// Passes an option on to srun: through --via=slurm inside an allocation. Outside one it is
// rejected, and the corrected line starts fleetrun with srun.
void pass_to_srun(const std::string& word, CompatLine& line);
void translate_srun_nodes(const std::string& value, CompatLine& line);

}  // namespace fleet
