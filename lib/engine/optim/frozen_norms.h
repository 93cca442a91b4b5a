// Batch normalization in frozen layers.
#pragma once

#include "graph/program.h"

namespace fleet {

// Finds the batch norms whose scale and bias are not trainable. If `fix`, they normalize with their
// running statistics from now on, which stay as they are (Keras' trainable=False; PyTorch's
// requires_grad=False and eval()). Call after freeze_parameters(), before the backward pass.
// Returns their number.
int freeze_batch_norms(Program& program, bool fix);

}  // namespace fleet
