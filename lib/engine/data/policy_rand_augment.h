// torchvision's RandAugment (Cubuk et al., "RandAugment: Practical automated data augmentation with
// a reduced search space", 2019): randomly chosen operations of one strength.
#pragma once

#include "data/policy.h"

namespace fleet::data {

// magnitude: 0 to bins - 1.
std::unique_ptr<Policy> make_rand_augment(int operations, int magnitude, int bins);

}  // namespace fleet::data
