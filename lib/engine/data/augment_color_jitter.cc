// Changes brightness, contrast, saturation and hue by random factors in random order, like
// torchvision's ColorJitter.
#include <algorithm>

#include "base/error.h"
#include "data/adjust_image.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

class ColorJitter : public Augment {
 public:
  struct Strength {
    double brightness, contrast, saturation, hue;
  };
  explicit ColorJitter(Strength strength) : strength_(strength) {}
  bool colours() const override { return true; }

  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    const auto factor = [&](double strength) {
      return static_cast<float>(random.uniform(std::max(0.0, 1 - strength), 1 + strength));
    };
    int order[] = {0, 1, 2, 3};
    for (int i = 3; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    // Always draws all four, so that one strength does not change the draws of another.
    const float bright = factor(strength_.brightness), contrasted = factor(strength_.contrast);
    const float saturated = factor(strength_.saturation);
    const auto turn = static_cast<float>(random.uniform(-strength_.hue, strength_.hue));
    for (const int which : order) {
      if (which == 0 && strength_.brightness > 0) adjust_brightness(planes, bright);
      if (which == 1 && strength_.contrast > 0) adjust_contrast(planes, contrasted);
      if (which == 2 && strength_.saturation > 0) adjust_saturation(planes, saturated);
      if (which == 3 && strength_.hue > 0) adjust_hue(planes, turn);
    }
  }

 private:
  Strength strength_;
};

}  // namespace

FLEET_AUGMENTATION(color_jitter) {
  def.order = 30;
  const std::string by = " by a factor from 1-x to 1+x; 0: off";
  def.schema.number("color_jitter.brightness", 0, 0, 10, "Change brightness" + by)
      .number("color_jitter.contrast", 0, 0, 10, "Change contrast" + by)
      .number("color_jitter.saturation", 0, 0, 10, "Change saturation" + by)
      .number("color_jitter.hue", 0, 0, 0.5, "Rotate hue by -x to x of the colour circle; 0: off");
  def.make = [](const Settings& settings, const ImageShape& image) -> std::unique_ptr<Augment> {
    const ColorJitter::Strength s{
        settings.number("color_jitter.brightness"), settings.number("color_jitter.contrast"),
        settings.number("color_jitter.saturation"), settings.number("color_jitter.hue")};
    if (s.brightness == 0 && s.contrast == 0 && s.saturation == 0 && s.hue == 0) return nullptr;
    if (image.channels != 3 && (s.saturation > 0 || s.hue > 0)) {
      throw Error(ErrorCode::kUsage, "grey images have no saturation and no hue",
                  "data.augment.color_jitter", "leave saturation and hue at 0");
    }
    return std::make_unique<ColorJitter>(s);
  };
}

}  // namespace fleet::data
