// torchvision's AugMix (Hendrycks et al., "AugMix: A Simple Data Processing Method to Improve
// Robustness and Uncertainty", 2020) with its defaults: the image, mixed with three versions of it,
// each after one to three operations.
#include "data/policy.h"
#include "data/torchvision_steps.h"

namespace fleet::data {
namespace {

class AugMix : public Policy {
 public:
  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    constexpr int kWidth = 3, kDeepest = 3;
    constexpr double kAlpha = 1;
    const double mixed = draw_beta(kAlpha, random);
    PolicyDraw draw{.own = static_cast<float>(1 - mixed), .chains = {}};
    for (const double share : draw_dirichlet(kAlpha, kWidth, random)) {
      PolicyDraw::Chain chain{.weight = static_cast<float>(share * mixed), .steps = {}};
      const int64_t depth = 1 + random.below(kDeepest);
      for (int64_t i = 0; i < depth; ++i) chain.steps.push_back(draw_step(image, random));
      draw.chains.push_back(std::move(chain));
    }
    return draw;
  }

 private:
  static ImageStep draw_step(const ImageShape& image, RandomStream& random) {
    constexpr StrengthRanges kRanges{.translate = 1.0 / 3, .most_bits = 4};
    constexpr int kSeverity = 3, kBins = 10;
    // All but the first, which changes nothing.
    const std::span<const Operation> all = trivial_operations().subspan(1);
    const Operation operation = all[random.below(std::ssize(all))];
    const auto bin = static_cast<int>(random.below(kSeverity));
    const double sign = draw_sign(random);
    return torchvision_step(operation, kRanges, bin, kBins, sign, image,
                            {.filter = Sampling::Filter::kBilinear});
  }
};

}  // namespace

FLEET_POLICY(aug_mix, "AugMix") {
  def.make = [](const std::vector<PolicySection>& sections) -> std::unique_ptr<Policy> {
    refuse_sections(sections);
    return std::make_unique<AugMix>();
  };
}

}  // namespace fleet::data
