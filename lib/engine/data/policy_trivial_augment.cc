// torchvision's TrivialAugmentWide (Müller and Hutter, "TrivialAugment: Tuning-free Yet
// State-of-the-Art Data Augmentation", 2021): one operation of any strength.
#include "data/policy.h"
#include "data/torchvision_steps.h"

namespace fleet::data {
namespace {

class TrivialAugmentWide : public Policy {
 public:
  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    constexpr StrengthRanges kWide{.shear = 0.99,
                                   .translate = 32,
                                   .translate_pixels = true,
                                   .degrees = 135,
                                   .factor = 0.99,
                                   .fewer_bits = 6};
    constexpr int kBins = 31;
    const std::span<const Operation> all = trivial_operations();
    const Operation operation = all[random.below(std::ssize(all))];
    const auto bin = static_cast<int>(random.below(kBins));
    const double sign = draw_sign(random);
    return {.chains = {{.steps = {torchvision_step(operation, kWide, bin, kBins, sign, image)}}}};
  }
};

std::unique_ptr<Policy> make_trivial_augment(const std::vector<PolicySection>& sections) {
  refuse_sections(sections);
  return std::make_unique<TrivialAugmentWide>();
}

}  // namespace

FLEET_POLICY(trivial_augment, "TrivialAugmentWide") { def.make = make_trivial_augment; }
FLEET_POLICY(trivial_augment_flag, "ta_wide") { def.make = make_trivial_augment; }

}  // namespace fleet::data
