#include "data/torchvision_steps.h"

#include <cmath>

namespace fleet::data {
namespace {

// torch.linspace(0, end, bins)[at].
double at_bin(double end, int at, int bins) {
  const auto last = static_cast<float>(end);
  const float step = last / static_cast<float>(bins - 1);
  if (at < bins / 2) return step * static_cast<float>(at);
  return last - step * static_cast<float>(bins - at - 1);
}

// torch.linspace(1, 0, bins)[at].
double from_one(int at, int bins) {
  const float step = -1 / static_cast<float>(bins - 1);
  if (at < bins / 2) return 1 + step * static_cast<float>(at);
  return -step * static_cast<float>(bins - at - 1);
}

}  // namespace

ImageStep torchvision_step(Operation operation, const StrengthRanges& ranges, int bin, int bins,
                           double sign, const ImageShape& image, const Sampling& sampling) {
  const auto strength = [&](double end) { return sign * at_bin(end, bin, bins); };
  const auto shift = [&](int side) {
    const double end = ranges.translate_pixels ? ranges.translate : ranges.translate * side;
    return std::trunc(strength(end));
  };
  const auto value = [&]() -> double {
    switch (operation) {
      case Operation::kShearX:
      case Operation::kShearY:
        return strength(ranges.shear);
      case Operation::kTranslateX:
        return shift(image.width);
      case Operation::kTranslateY:
        return shift(image.height);
      case Operation::kRotate:
        return strength(ranges.degrees);
      case Operation::kBrightness:
      case Operation::kColour:
      case Operation::kContrast:
      case Operation::kSharpness:
        return 1 + strength(ranges.factor);
      case Operation::kPosterize: {
        const float less = static_cast<float>(bin) /
                           (static_cast<float>(bins - 1) / static_cast<float>(ranges.fewer_bits));
        // Halves to even, as torch rounds.
        return static_cast<double>(std::lrint(static_cast<float>(ranges.most_bits) - less));
      }
      case Operation::kSolarize:
        return from_one(bin, bins);
      default:
        return 0;
    }
  };
  return {operation, value(), sampling};
}

double draw_sign(RandomStream& random) { return random.uniform() <= 0.5 ? -1 : 1; }

std::span<const Operation> trivial_operations() {
  // In the order of torchvision's _AUGMENTATION_SPACE.
  static constexpr Operation kAll[] = {
      Operation::kIdentity,     Operation::kShearX,     Operation::kShearY,
      Operation::kTranslateX,   Operation::kTranslateY, Operation::kRotate,
      Operation::kBrightness,   Operation::kColour,     Operation::kContrast,
      Operation::kSharpness,    Operation::kPosterize,  Operation::kSolarize,
      Operation::kAutocontrast, Operation::kEqualize,
  };
  return kAll;
}

}  // namespace fleet::data
