// fleet-worker --pack.
#pragma once

#include "arguments.h"
#include "base/config.h"

namespace fleet {

// Packs the images of the job as the arguments say, with a progress bar on standard error.
void pack_job(const WorkerArguments& arguments, const ConfigTree& tree);

}  // namespace fleet
