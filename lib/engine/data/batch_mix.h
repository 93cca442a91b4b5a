// Applies a BatchMix to the images of a batch. Internal to data.
#pragma once

#include <cstdint>

#include "data/augment.h"

namespace fleet::data {

// Mixes `count` images in place: image i with image i - 1 as it was before, image 0 with `before`.
// Normalised floats, channels x height x width.
void mix_images(float* images, int64_t count, const float* before, const ImageShape& image,
                const BatchMix& mix);
// The same for bytes, height x width x `step`; rounded.
void mix_images(uint8_t* images, int64_t count, const uint8_t* before, const ImageShape& image,
                int64_t step, const BatchMix& mix);

}  // namespace fleet::data
