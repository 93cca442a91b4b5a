// Shared by the passes that let an operation take in the activation behind it.
#pragma once

#include <string>

#include "graph/program.h"

namespace fleet {

// Where the only reader of the first output of a `type` operation is an activation that `type`
// takes in, in the same section: the operation computes the activation too. Returns how many. Runs
// before the backward pass.
int fuse_activations(Program& program, const std::string& type);

// Counts the operations of this type with an activation, in sections that train.
int count_fused(const Program& program, const std::string& type);

// Says it in the words users look for: "---  detected 16 subgraphs", and of which pass.
void log_fused(const std::string& pass, int count);

}  // namespace fleet
