// Replaces a rectangle of each image of a batch by that of another one, and mixes the labels by
// area (Yun et al., "CutMix", 2019), like torchvision's CutMix.
#include <algorithm>
#include <cmath>

#include "data/augment.h"
#include "data/random.h"

namespace fleet::data {
namespace {

class Cutmix : public Augment {
 public:
  explicit Cutmix(double alpha) : alpha_(alpha) {}
  bool mixes() const override { return true; }

  BatchMix mix(const ImageShape& image, RandomStream& random) const override {
    const double own = draw_beta(alpha_, random);
    const auto x = static_cast<int>(random.below(image.width));
    const auto y = static_cast<int>(random.below(image.height));
    const double half = 0.5 * std::sqrt(1 - own);
    const int half_width = static_cast<int>(half * image.width);
    const int half_height = static_cast<int>(half * image.height);
    BatchMix mix{.left = std::max(x - half_width, 0),
                 .top = std::max(y - half_height, 0),
                 .right = std::min(x + half_width, image.width),
                 .bottom = std::min(y + half_height, image.height),
                 .cuts = true};
    const double area = double(mix.right - mix.left) * (mix.bottom - mix.top);
    mix.own = static_cast<float>(1 - area / (double(image.width) * image.height));
    return mix;
  }

 private:
  double alpha_;
};

bool mixes(const Settings& settings) { return settings.number("cutmix_alpha") > 0; }

}  // namespace

FLEET_AUGMENTATION(cutmix) {
  def.order = 60;
  def.schema.number(
      "cutmix_alpha", 0, 0, 1000,
      "Replace a rectangle of each image of a batch with that of another image, and mix the labels "
      "by area; the share of the area that is kept is drawn from Beta(x, x) for each batch (usual: "
      "1); 0: off. If mixup_alpha is set too, each batch draws one of the two methods");
  def.make = [](const Settings& settings, const ImageShape&) {
    return mixes(settings) ? std::make_unique<Cutmix>(settings.number("cutmix_alpha")) : nullptr;
  };
  def.mixes = mixes;
}

}  // namespace fleet::data
