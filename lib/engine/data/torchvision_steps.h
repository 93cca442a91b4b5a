// Strengths of operations in torchvision's policies (torchvision.transforms.v2,
// _AUGMENTATION_SPACE).
#pragma once

#include <span>

#include "data/image_operation.h"

namespace fleet::data {

// Largest strength of each operation; bins divide the range from none to it evenly.
struct StrengthRanges {
  double shear = 0.3;
  double translate = 150.0 / 331;  // share of the image's side, or pixels
  bool translate_pixels = false;
  double degrees = 30;
  double factor = 0.9;  // brightness, colour, contrast, sharpness: 1 - factor to 1 + factor
  int most_bits = 8, fewer_bits = 4;  // posterize keeps most_bits, down to most_bits - fewer_bits
};

// The step of an operation at a bin, 0 to bins - 1. sign: -1 or 1, where a strength has one.
ImageStep torchvision_step(Operation operation, const StrengthRanges& ranges, int bin, int bins,
                           double sign, const ImageShape& image, const Sampling& sampling = {});

// -1 or 1, as torchvision draws it.
double draw_sign(RandomStream& random);

// The operations of RandAugment and TrivialAugmentWide.
std::span<const Operation> trivial_operations();

}  // namespace fleet::data
