// The backward pass: appends the operations that compute gradients.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "graph/program.h"

namespace fleet {

struct BackwardResult {
  SectionId section = -1;
  // Trainable parameters that the loss depends on, in the order in which their gradients are
  // computed.
  std::vector<VarId> parameters;
  VarId loss_scaling = kNoVar;  // factor that d(loss) was multiplied with
};

// Differentiates the operations of section `forward` from `loss` (a scalar) with respect to every
// trainable parameter it depends on, in a new section "backward" with the same predicate. d(loss) =
// scale; 1 / number of ranks turns a sum over ranks into an average. If several operations read a
// variable, their contributions are added (operation "sum"). kInternal if an operation on the way
// has no gradient. Program::gradient() returns the results.
// loss_scaling: a float32 [1] that d(loss) is multiplied with, read in every step.
// wrt: feeds whose gradients are wanted, too.
BackwardResult append_backward(Program& program, SectionId forward, VarId loss, double scale,
                               VarId loss_scaling = kNoVar, const std::vector<VarId>& wrt = {});

// The same, starting from given gradients {variable, its gradient}, and with respect to the
// variables `wrt` (feeds, states) as well.
BackwardResult append_backward_from(Program& program, SectionId forward,
                                    const std::vector<std::pair<VarId, VarId>>& seeds,
                                    const std::vector<VarId>& wrt);

// The trainable parameters, `wrt`, and the variables of section `forward` that depend on them: a
// backward pass may go through these.
std::set<VarId> differentiable_vars(const Program& program, SectionId forward,
                                    const std::vector<VarId>& wrt = {});

}  // namespace fleet
