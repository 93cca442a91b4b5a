// fleet-worker --explain.
#pragma once

#include "arguments.h"
#include "base/config.h"

namespace fleet {

// Prints the explanation of the job as arguments.format says. May start this program again with
// another OMP_NUM_THREADS, so that it measures with the cores that a rank will have.
void explain_job(const WorkerArguments& arguments, const ConfigTree& tree, char** argv);

}  // namespace fleet
