// Blends each image of a batch with another one, and its label (Zhang et al., "mixup: Beyond
// Empirical Risk Minimization", 2017), like torchvision's MixUp.
#include "data/augment.h"
#include "data/random.h"

namespace fleet::data {
namespace {

class Mixup : public Augment {
 public:
  explicit Mixup(double alpha) : alpha_(alpha) {}
  bool mixes() const override { return true; }
  BatchMix mix(const ImageShape&, RandomStream& random) const override {
    return {.own = static_cast<float>(draw_beta(alpha_, random))};
  }

 private:
  double alpha_;
};

bool alpha_mixes(const Settings& settings) { return settings.number("mixup_alpha") > 0; }

}  // namespace

FLEET_AUGMENTATION(mixup) {
  def.order = 60;
  def.schema.number(
      "mixup_alpha", 0, 0, 1000,
      "Blend each image of a batch and its label with another one, by a share drawn from "
      "Beta(x, x) for each batch (usual: 0.2); 0: off");
  def.make = [](const Settings& settings, const ImageShape&) {
    return alpha_mixes(settings) ? std::make_unique<Mixup>(settings.number("mixup_alpha"))
                                 : nullptr;
  };
  def.mixes = alpha_mixes;
}

}  // namespace fleet::data
