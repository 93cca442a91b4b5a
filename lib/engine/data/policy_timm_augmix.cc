// timm's AugMix: "augmix", then sections: "augmix-m3-w3-d-1-a1-mstd0.5".
#include "data/policy.h"
#include "data/timm_operation.h"

namespace fleet::data {
namespace {

constexpr std::string_view kAugMixNames[] = {"AutoContrast",
                                             "ColorIncreasing",
                                             "ContrastIncreasing",
                                             "BrightnessIncreasing",
                                             "SharpnessIncreasing",
                                             "Equalize",
                                             "Rotate",
                                             "PosterizeIncreasing",
                                             "SolarizeIncreasing",
                                             "ShearX",
                                             "ShearY",
                                             "TranslateXRel",
                                             "TranslateYRel"};

class TimmAugMix : public Policy {
 public:
  // depth: operations of a version; 0: one to three, drawn.
  TimmAugMix(double alpha, int width, int depth, const TimmUse& use)
      : alpha_(alpha), width_(width), depth_(depth), use_(use) {
    for (const std::string_view name : kAugMixNames) operations_.push_back(&timm_operation(name));
  }

  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    const std::vector<double> shares = draw_dirichlet(alpha_, width_, random);
    const double mixed = draw_beta(alpha_, random);
    PolicyDraw draw{.own = static_cast<float>(1 - mixed), .chains = {}};
    for (const double share : shares) {
      PolicyDraw::Chain chain{.weight = static_cast<float>(share * mixed), .steps = {}};
      const int64_t depth = depth_ > 0 ? depth_ : 1 + random.below(3);
      for (int64_t i = 0; i < depth; ++i) {
        const TimmOperation& one = *operations_[random.below(std::ssize(operations_))];
        if (const auto step = draw_timm_step(one, use_, image, random))
          chain.steps.push_back(*step);
      }
      draw.chains.push_back(std::move(chain));
    }
    return draw;
  }

 private:
  const double alpha_;
  const int width_, depth_;
  const TimmUse use_;
  std::vector<const TimmOperation*> operations_;
};

std::unique_ptr<Policy> make_timm_augmix(const std::vector<PolicySection>& sections) {
  constexpr int kMost = 1000;
  TimmUse use{.magnitude = 3, .any_magnitude = true};
  double alpha = 1;
  int width = 3, depth = 0;
  for (const PolicySection& one : sections) {
    if (one.name == "m") {
      use.magnitude = section_integer(one, 0, kMost);
    } else if (one.name == "w") {
      width = section_integer(one, 1, 100);
    } else if (one.name == "d") {
      depth = section_integer(one, 0, 100);
    } else if (one.name == "a") {
      alpha = section_number(one, 1e-3, 1e3);
    } else if (one.name == "b") {
      section_integer(one, 0, 1);  // timm's faster way to the same mean
    } else if (one.name == "mstd") {
      use.deviation = section_number(one, 0, 1e9);
      use.any_magnitude = false;
    } else {
      refuse_section(one, "m, w, d, a, b, mstd");
    }
  }
  return std::make_unique<TimmAugMix>(alpha, width, depth, use);
}

}  // namespace

FLEET_POLICY(timm_augmix, "augmix") { def.make = make_timm_augmix; }

}  // namespace fleet::data
