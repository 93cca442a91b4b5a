// Changes brightness, contrast, saturation and hue by random factors in random order, like
// torchvision's ColorJitter.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

constexpr float kRed = 0.299f, kGreen = 0.587f, kBlue = 0.114f;  // ITU-R BT.601 luma

float unit(float value) { return std::clamp(value, 0.0f, 1.0f); }

struct Planes {
  float* pixels;
  int channels;
  size_t count;  // pixels per plane
  float grey(size_t i) const {
    if (channels == 1) return pixels[i];
    return kRed * pixels[i] + kGreen * pixels[count + i] + kBlue * pixels[2 * count + i];
  }
};

void brightness(const Planes& p, float factor) {
  for (size_t i = 0; i < p.channels * p.count; ++i) p.pixels[i] = unit(p.pixels[i] * factor);
}

void contrast(const Planes& p, float factor) {
  double sum = 0;
  for (size_t i = 0; i < p.count; ++i) sum += p.grey(i);
  const float rest = (1 - factor) * static_cast<float>(sum / static_cast<double>(p.count));
  for (size_t i = 0; i < p.channels * p.count; ++i) p.pixels[i] = unit(p.pixels[i] * factor + rest);
}

void saturation(const Planes& p, float factor) {
  for (size_t i = 0; i < p.count; ++i) {
    const float rest = (1 - factor) * p.grey(i);
    for (int c = 0; c < 3; ++c) {
      float& value = p.pixels[c * p.count + i];
      value = unit(value * factor + rest);
    }
  }
}

// Rotates the hue by `turn` of the colour circle, keeping HSV's saturation and value.
void hue(const Planes& p, float turn) {
  for (size_t i = 0; i < p.count; ++i) {
    float& r = p.pixels[i];
    float& g = p.pixels[p.count + i];
    float& b = p.pixels[2 * p.count + i];
    const float high = std::max({r, g, b}), range = high - std::min({r, g, b});
    if (range <= 0) continue;
    float sixth = high == r   ? (g - b) / range
                  : high == g ? 2 + (b - r) / range
                              : 4 + (r - g) / range;
    sixth += 6 * turn + 12;
    const auto channel = [&](float offset) {
      const float k = std::fmod(offset + sixth, 6.0f);
      return high - range * std::clamp(std::min(k, 4 - k), 0.0f, 1.0f);
    };
    const float red = channel(5), green = channel(3), blue = channel(1);
    r = red, g = green, b = blue;
  }
}

class ColorJitter : public Augment {
 public:
  struct Strength {
    double brightness, contrast, saturation, hue;
  };
  explicit ColorJitter(Strength strength) : strength_(strength) {}
  bool colours() const override { return true; }

  void colour(float* pixels, const ImageShape& image, RandomStream& random) const override {
    const Planes planes{pixels, image.channels, size_t(image.height) * image.width};
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
      if (which == 0 && strength_.brightness > 0) brightness(planes, bright);
      if (which == 1 && strength_.contrast > 0) contrast(planes, contrasted);
      if (which == 2 && strength_.saturation > 0) saturation(planes, saturated);
      if (which == 3 && strength_.hue > 0) hue(planes, turn);
    }
  }

 private:
  Strength strength_;
};

Schema schema() {
  Schema schema;
  const std::string by = " by a factor from 1-x to 1+x; 0: off";
  schema.number("color_jitter.brightness", 0, 0, 10, "Change brightness" + by)
      .number("color_jitter.contrast", 0, 0, 10, "Change contrast" + by)
      .number("color_jitter.saturation", 0, 0, 10, "Change saturation" + by)
      .number("color_jitter.hue", 0, 0, 0.5, "Rotate hue by -x to x of the colour circle; 0: off");
  return schema;
}

std::unique_ptr<Augment> make(const Settings& settings, const ImageShape& image) {
  const ColorJitter::Strength s{
      settings.number("color_jitter.brightness"), settings.number("color_jitter.contrast"),
      settings.number("color_jitter.saturation"), settings.number("color_jitter.hue")};
  if (s.brightness == 0 && s.contrast == 0 && s.saturation == 0 && s.hue == 0) return nullptr;
  if (image.channels != 3 && (s.saturation > 0 || s.hue > 0)) {
    throw Error(ErrorCode::kUsage, "grey images have no saturation and no hue",
                "data.augment.color_jitter", "leave saturation and hue at 0");
  }
  return std::make_unique<ColorJitter>(s);
}

}  // namespace
FLEET_AUGMENTATION(color_jitter) {
  def.order = 30;
  def.train = true;
  def.schema = schema;
  def.make = make;
}

}  // namespace fleet::data
