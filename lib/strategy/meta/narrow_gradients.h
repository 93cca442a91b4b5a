// What fp16_allreduce and bf16_allreduce share: gradients that travel in a low type.
#pragma once

#include <memory>
#include <string>

#include "strategy/meta_optimizer.h"

namespace fleet {

// Sets all of `def` but its help, cost and figure. name: the field, and that of the meta-optimizer.
void narrow_gradients(MetaOptimizerDef& def, const std::string& name, DType low);

}  // namespace fleet
