// The backward pass: appends the operations that compute gradients.
#pragma once

#include "graph/program.h"

namespace fleet {

struct BackwardResult {
  SectionId section;
  std::vector<VarId>
      parameters;  // trainable ones that reach the loss, in the order their gradients are computed
};

// Differentiates the operations of section `forward` from `loss` (a scalar) back to every trainable
// parameter it depends on, in a new section "backward" of the same predicate. d(loss) = scale: 1 /
// number of ranks, so that a sum over ranks averages. Where several operations read a variable,
// their contributions are added (operation "sum"). wrt: further variables (feeds) whose gradient is
// wanted. kInternal where an operation on the way has no gradient. Program::gradient() gives the
// results.
BackwardResult append_backward(Program& program, SectionId forward, VarId loss, double scale,
                               const std::vector<VarId>& wrt = {});

}  // namespace fleet
