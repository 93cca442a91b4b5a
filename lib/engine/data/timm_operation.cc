#include "data/timm_operation.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fleet::data {
namespace {

constexpr TimmOperation kTimmOperations[] = {
    {"AutoContrast", Operation::kAutocontrast, TimmStrength::kNone},
    {"Equalize", Operation::kEqualize, TimmStrength::kNone},
    {"Invert", Operation::kInvert, TimmStrength::kNone},
    {"Rotate", Operation::kRotate, TimmStrength::kRotate},
    {"Posterize", Operation::kPosterize, TimmStrength::kPosterize},
    {"PosterizeIncreasing", Operation::kPosterize, TimmStrength::kPosterizeFewer},
    {"PosterizeOriginal", Operation::kPosterize, TimmStrength::kPosterizePaper},
    {"Solarize", Operation::kSolarize, TimmStrength::kSolarize},
    {"SolarizeIncreasing", Operation::kSolarize, TimmStrength::kSolarizeLower},
    {"SolarizeAdd", Operation::kSolarizeAdd, TimmStrength::kSolarizeAdd},
    {"Color", Operation::kColour, TimmStrength::kEnhance},
    {"ColorIncreasing", Operation::kColour, TimmStrength::kEnhanceAway},
    {"Contrast", Operation::kContrast, TimmStrength::kEnhance},
    {"ContrastIncreasing", Operation::kContrast, TimmStrength::kEnhanceAway},
    {"Brightness", Operation::kBrightness, TimmStrength::kEnhance},
    {"BrightnessIncreasing", Operation::kBrightness, TimmStrength::kEnhanceAway},
    {"Sharpness", Operation::kSharpness, TimmStrength::kEnhance},
    {"SharpnessIncreasing", Operation::kSharpness, TimmStrength::kEnhanceAway},
    {"ShearX", Operation::kShearX, TimmStrength::kShear},
    {"ShearY", Operation::kShearY, TimmStrength::kShear},
    {"TranslateXRel", Operation::kTranslateX, TimmStrength::kTranslate},
    {"TranslateYRel", Operation::kTranslateY, TimmStrength::kTranslate},
    {"Desaturate", Operation::kColour, TimmStrength::kGrey},
    {"GaussianBlur", Operation::kBlur, TimmStrength::kBlur},
    {"GaussianBlurRand", Operation::kBlur, TimmStrength::kBlurAny},
};

}  // namespace

const TimmOperation& timm_operation(std::string_view name) {
  const auto* found = std::ranges::find(kTimmOperations, name, &TimmOperation::name);
  FLEET_CHECK(found != std::end(kTimmOperations), "an operation that timm lacks");
  return *found;
}

double timm_value(const TimmOperation& one, double magnitude, double sign, const ImageShape& image,
                  RandomStream& random) {
  const double share = magnitude / 10;    // usually from 0 to 1
  constexpr double kBetween = 0.5 / 255;  // a threshold between two values of 8 bits
  switch (one.strength) {
    case TimmStrength::kNone:
      return 0;
    case TimmStrength::kRotate:
      return sign * 30 * share;
    case TimmStrength::kEnhance:
      return 0.1 + 1.8 * share;
    case TimmStrength::kEnhanceAway:
      return std::max(0.1, 1 + sign * 0.9 * share);
    case TimmStrength::kPosterize:
      return std::trunc(4 * share);
    case TimmStrength::kPosterizeFewer:
      return std::max(4 - std::trunc(4 * share), 0.0);
    case TimmStrength::kPosterizePaper:
      return 4 + std::trunc(4 * share);
    case TimmStrength::kSolarize:
      return std::min(256.0, std::trunc(256 * share)) / 255 - kBetween;
    case TimmStrength::kSolarizeLower:
      return (256 - std::min(256.0, std::trunc(256 * share))) / 255 - kBetween;
    case TimmStrength::kSolarizeAdd:
      return std::min(128.0, std::trunc(110 * share)) / 255;
    case TimmStrength::kShear:
      return sign * 0.3 * share;
    case TimmStrength::kTranslate:
      // Pillow's map goes from the output to the source.
      return -sign * 0.45 * share *
             (one.operation == Operation::kTranslateX ? image.width : image.height);
    case TimmStrength::kGrey:
      return 1 - std::clamp(0.5 + 0.5 * share, 0.5, 1.0);
    case TimmStrength::kBlur:
      return std::clamp(0.1 + 1.9 * share, 0.1, 2.0);
    case TimmStrength::kBlurAny:
      return random.uniform(0.1, 2 * std::clamp(share, 0.0, 1.0));
  }
  return 0;
}

std::optional<ImageStep> draw_timm_step(const TimmOperation& one, const TimmUse& use,
                                        const ImageShape& image, RandomStream& random) {
  // All are drawn, so that one operation does not change the draws of the next.
  const bool applied = random.uniform() < use.probability;
  const double noise = use.any_magnitude ? 0 : use.deviation * random.normal();
  const double part = random.uniform();
  const double sign = random.uniform() < 0.5 ? -1 : 1;
  const bool cubic = random.below(2) == 1;
  const double drawn = use.any_magnitude ? part * use.magnitude : use.magnitude + noise;
  const double magnitude = std::clamp(drawn, 0.0, use.most);
  ImageStep step{one.operation,
                 timm_value(one, magnitude, sign, image, random),
                 {.filter = cubic ? Sampling::Filter::kBicubic : Sampling::Filter::kBilinear,
                  .outside = Sampling::Outside::kMean},
                 Steps::kBytes};
  const bool nothing = one.operation == Operation::kPosterize && step.value >= 8;
  if (!applied || nothing) return std::nullopt;
  return step;
}

}  // namespace fleet::data
