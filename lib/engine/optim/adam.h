// Code that adam and adamw share.
#pragma once

#include "optim/optimizer.h"

namespace fleet {

Schema adam_schema();
// decoupled: weight decay is separate from the gradient (adamw).
void append_adam(UpdateContext& context, const Update& update, bool decoupled);

}  // namespace fleet
