// The operations that augmentation policies apply to finished pixels.
#pragma once

#include "data/adjust_image.h"

namespace fleet::data {

enum class Operation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColour,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kSolarizeAdd,
  kAutocontrast,
  kEqualize,
  kInvert,
  kBlur,
};

// One operation of a given strength. value: the slope of a shear; pixels to the right or down;
// degrees counter-clockwise; the factor of brightness, colour, contrast and sharpness (1 changes
// nothing); the bits that posterize keeps; the least value that solarize inverts; the value that
// solarize_add adds to values below one half; the radius of Pillow's blur; else unused.
struct ImageStep {
  Operation operation = Operation::kIdentity;
  double value = 0;
  Sampling sampling = {};       // for operations that move pixels
  Steps steps = Steps::kExact;  // for those of colours
};

void apply(const ImageStep& step, const ImagePlanes& planes);

}  // namespace fleet::data
