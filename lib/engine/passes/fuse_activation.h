// Shared by the passes that fuse an activation into the operation before it.
#pragma once

#include <string>

#include "graph/program.h"

namespace fleet {

// If the only reader of the first output of a `type` operation is an activation that `type`
// supports, in the same section, the operation computes the activation too. Returns the number of
// fusions. Runs before the backward pass.
int fuse_activations(Program& program, const std::string& type);
// Likewise the activations that `type` supports by computing their input again
// (RecomputesActivations), for backends that have these kernels.
int fuse_recomputed_activations(Program& program, const std::string& type);

// Whether a batch norm, with a fused activation or z, needs a mask for its gradient: one with fixed
// statistics only if layers before it are trained.
bool needs_mask(const Program& program, const Op& norm);

// Counts operations of this type with an activation, in training sections.
int count_fused(const Program& program, const std::string& type);

// Logs Paddle's wording, which users search for: "---  detected 16 subgraphs", and the pass.
void log_fused(const std::string& pass, int count);

}  // namespace fleet
