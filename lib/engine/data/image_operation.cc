#include "data/image_operation.h"

namespace fleet::data {

void apply(const ImageStep& step, const ImagePlanes& planes) {
  const double value = step.value;
  const auto number = static_cast<float>(value);
  switch (step.operation) {
    case Operation::kIdentity:
      return;
    case Operation::kShearX:
      return shear(planes, value, 0, step.sampling);
    case Operation::kShearY:
      return shear(planes, 0, value, step.sampling);
    case Operation::kTranslateX:
      return translate(planes, value, 0, step.sampling);
    case Operation::kTranslateY:
      return translate(planes, 0, value, step.sampling);
    case Operation::kRotate:
      return rotate(planes, value, step.sampling);
    case Operation::kBrightness:
      return adjust_brightness(planes, number);
    case Operation::kColour:
      return adjust_saturation(planes, number, step.steps);
    case Operation::kContrast:
      return adjust_contrast(planes, number, step.steps);
    case Operation::kSharpness:
      return adjust_sharpness(planes, number, step.steps);
    case Operation::kPosterize:
      return posterize(planes, static_cast<int>(value));
    case Operation::kSolarize:
      return solarize(planes, number);
    case Operation::kSolarizeAdd:
      return solarize_add(planes, number);
    case Operation::kAutocontrast:
      return autocontrast(planes);
    case Operation::kEqualize:
      return equalize(planes);
    case Operation::kInvert:
      return invert(planes);
    case Operation::kBlur:
      return blur_like_pillow(planes, value);
  }
}

}  // namespace fleet::data
