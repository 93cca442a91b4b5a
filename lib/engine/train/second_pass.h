// The second pass of each step: train.sam.
#pragma once

#include "train/session.h"

namespace fleet {

// Appends it to a Program with its backward pass, before the updates. kUsage naming train.sam.rho
// if a strategy leaves this rank without the whole gradient before an update; kUnsupported as
// append_sam().
void append_second_pass(const Job& job, int rank, const BackwardResult& backward,
                        BuiltProgram* built);

}  // namespace fleet
