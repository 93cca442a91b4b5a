// Operations with the strengths that timm's policies give them (timm 1.0, data/auto_augment.py).
#pragma once

#include <optional>
#include <string_view>

#include "data/image_operation.h"

namespace fleet::data {

// How the magnitude, from 0 to 10 or to `most`, becomes a strength.
enum class TimmStrength {
  kNone,
  kRotate,
  kEnhance,         // factor 0.1 to 1.9
  kEnhanceAway,     // factor 1 - 0.9 or 1 + 0.9: "Increasing"
  kPosterize,       // 0 to 4 bits
  kPosterizeFewer,  // 4 to 0 bits: "Increasing"
  kPosterizePaper,  // 4 to 8 bits: "Original"
  kSolarize,        // threshold 0 to 256
  kSolarizeLower,   // threshold 256 to 0: "Increasing"
  kSolarizeAdd,     // adds 0 to 110
  kShear,
  kTranslate,  // 0.45 of the side
  kGrey,       // colour factor 0.5 to 0
  kBlur,       // radius 0.1 to 2
  kBlurAny,    // radius from 0.1 to 0 to 2, drawn
};

struct TimmOperation {
  std::string_view name;  // timm's
  Operation operation;
  TimmStrength strength;
};

// The operation with this name of timm's; it must exist.
const TimmOperation& timm_operation(std::string_view name);

// The strength, as of ImageStep::value, at a magnitude. sign: -1 or 1, where a strength has one.
double timm_value(const TimmOperation& operation, double magnitude, double sign,
                  const ImageShape& image, RandomStream& random);

// How a policy uses its operations.
struct TimmUse {
  double probability = 1;
  double magnitude = 10;
  double deviation = 0;        // normal, added to the magnitude
  bool any_magnitude = false;  // uniform from 0 to the magnitude instead
  double most = 10;            // bounds the drawn magnitude
};

// Nothing if the operation is not applied this time. Pixels are moved with a filter drawn from
// bilinear and bicubic; outside the image they have the mean of data.mean.
std::optional<ImageStep> draw_timm_step(const TimmOperation& operation, const TimmUse& use,
                                        const ImageShape& image, RandomStream& random);

}  // namespace fleet::data
