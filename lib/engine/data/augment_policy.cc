// Applies a policy of torchvision or timm by its name.
#include "data/augment.h"
#include "data/policy.h"

namespace fleet::data {
namespace {

class PolicyAugment : public Augment {
 public:
  explicit PolicyAugment(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}
  bool colours() const override { return true; }
  bool depends_on_place() const override { return true; }
  bool refuses_masks() const override { return true; }
  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    apply(policy_->draw(planes.image, random), planes);
  }

 private:
  std::unique_ptr<Policy> policy_;
};

}  // namespace

std::unique_ptr<Augment> make_policy_augment(std::unique_ptr<Policy> policy) {
  return std::make_unique<PolicyAugment>(std::move(policy));
}

FLEET_AUGMENTATION(policy) {
  def.order = 25;
  def.schema.text("policy", "",
                  "Policy by its name in torchvision (AutoAugment, TrivialAugmentWide, AugMix...) "
                  "or as timm writes it (rand-m9-mstd0.5-inc1, augmix-m3-w3, 3a...); \"\": none");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    const std::string text = settings.text("policy");
    if (text.empty()) return nullptr;
    if (settings.integer("rand_augment.operations") > 0) {
      throw Error(ErrorCode::kUsage, "'policy' and 'rand_augment' both choose operations",
                  "data.augment", "switch one of them off");
    }
    return make_policy_augment(make_policy(text));
  };
}

}  // namespace fleet::data
