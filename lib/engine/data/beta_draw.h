// Draws from a symmetric beta distribution, for mixup and cutmix.
#pragma once

#include "data/random.h"

namespace fleet::data {

// Beta(alpha, alpha), alpha > 0: within [0, 1].
double draw_beta(double alpha, RandomStream& random);

}  // namespace fleet::data
