// Common code of fp16_allreduce and bf16_allreduce: exchange gradients in a low type.
#pragma once

#include <string>

#include "strategy/meta_optimizer.h"

namespace fleet {

// Sets all members of `def` except help, cost and figure. name: for the field and the
// meta-optimizer.
void narrow_gradients(MetaOptimizerDef& def, const std::string& name, DType low);

}  // namespace fleet
