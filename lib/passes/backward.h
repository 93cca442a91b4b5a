// The backward pass: appends the operations that compute gradients.
#pragma once

#include <utility>
#include <vector>

#include "graph/program.h"

namespace fleet {

struct BackwardResult {
  SectionId section = -1;
  // Trainable parameters that reach the loss, in the order in which their gradients are computed.
  std::vector<VarId> parameters;
  VarId loss_scaling = kNoVar;  // what d(loss) was multiplied with
};

// Differentiates the operations of section `forward` from `loss` (a scalar) back to every trainable
// parameter it depends on, in a new section "backward" of the same predicate. d(loss) = scale: 1 /
// number of ranks, so that a sum over ranks averages. Where several operations read a variable,
// their contributions are added (operation "sum"). kInternal where an operation on the way has no
// gradient. Program::gradient() gives the results.
// loss_scaling: a float32 [1] that d(loss) is multiplied with, read in every step.
BackwardResult append_backward(Program& program, SectionId forward, VarId loss, double scale,
                               VarId loss_scaling = kNoVar);

// The same from given gradients of given variables {variable, its gradient}, also to the variables
// `wrt` (feeds, states).
BackwardResult append_backward_from(Program& program, SectionId forward,
                                    const std::vector<std::pair<VarId, VarId>>& seeds,
                                    const std::vector<VarId>& wrt);

}  // namespace fleet
