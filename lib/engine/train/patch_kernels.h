// The convolution that cuts an image into patches, for patches of another size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/position_grid.h"

namespace fleet {

// kernels: any number of `from.height` x `from.width` values. Returns them for patches of `to`, as
// timm's resample_patch_embed: with the pseudo-inverse of the antialiased bicubic resize of a patch
// (FlexiViT, Beyer et al. 2023), so that a resized image gives nearly the same tokens.
std::vector<float> resampled_kernels(std::span<const float> kernels, const PositionGrid& from,
                                     const PositionGrid& to);

}  // namespace fleet
