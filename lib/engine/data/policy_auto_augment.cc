// torchvision's AutoAugment (Cubuk et al., "AutoAugment: Learning Augmentation Strategies from
// Data", 2019): one of 25 pairs of operations, with the probabilities and strengths found for a
// dataset.
#include "data/policy.h"
#include "data/torchvision_steps.h"

namespace fleet::data {
namespace auto_augment {
namespace {

struct Choice {
  Operation operation;
  double probability;
  int bin = 0;  // of 10
};
struct Pair {
  Choice first, second;
};

using enum Operation;

constexpr Pair kImageNetPairs[] = {
    {{kPosterize, 0.4, 8}, {kRotate, 0.6, 9}}, {{kSolarize, 0.6, 5}, {kAutocontrast, 0.6}},
    {{kEqualize, 0.8}, {kEqualize, 0.6}},      {{kPosterize, 0.6, 7}, {kPosterize, 0.6, 6}},
    {{kEqualize, 0.4}, {kSolarize, 0.2, 4}},   {{kEqualize, 0.4}, {kRotate, 0.8, 8}},
    {{kSolarize, 0.6, 3}, {kEqualize, 0.6}},   {{kPosterize, 0.8, 5}, {kEqualize, 1}},
    {{kRotate, 0.2, 3}, {kSolarize, 0.6, 8}},  {{kEqualize, 0.6}, {kPosterize, 0.4, 6}},
    {{kRotate, 0.8, 8}, {kColour, 0.4, 0}},    {{kRotate, 0.4, 9}, {kEqualize, 0.6}},
    {{kEqualize, 0}, {kEqualize, 0.8}},        {{kInvert, 0.6}, {kEqualize, 1}},
    {{kColour, 0.6, 4}, {kContrast, 1, 8}},    {{kRotate, 0.8, 8}, {kColour, 1, 2}},
    {{kColour, 0.8, 8}, {kSolarize, 0.8, 7}},  {{kSharpness, 0.4, 7}, {kInvert, 0.6}},
    {{kShearX, 0.6, 5}, {kEqualize, 1}},       {{kColour, 0.4, 0}, {kEqualize, 0.6}},
    {{kEqualize, 0.4}, {kSolarize, 0.2, 4}},   {{kSolarize, 0.6, 5}, {kAutocontrast, 0.6}},
    {{kInvert, 0.6}, {kEqualize, 1}},          {{kColour, 0.6, 4}, {kContrast, 1, 8}},
    {{kEqualize, 0.8}, {kEqualize, 0.6}},
};

constexpr Pair kCifar10Pairs[] = {
    {{kInvert, 0.1}, {kContrast, 0.2, 6}},         {{kRotate, 0.7, 2}, {kTranslateX, 0.3, 9}},
    {{kSharpness, 0.8, 1}, {kSharpness, 0.9, 3}},  {{kShearY, 0.5, 8}, {kTranslateY, 0.7, 9}},
    {{kAutocontrast, 0.5}, {kEqualize, 0.9}},      {{kShearY, 0.2, 7}, {kPosterize, 0.3, 7}},
    {{kColour, 0.4, 3}, {kBrightness, 0.6, 7}},    {{kSharpness, 0.3, 9}, {kBrightness, 0.7, 9}},
    {{kEqualize, 0.6}, {kEqualize, 0.5}},          {{kContrast, 0.6, 7}, {kSharpness, 0.6, 5}},
    {{kColour, 0.7, 7}, {kTranslateX, 0.5, 8}},    {{kEqualize, 0.3}, {kAutocontrast, 0.4}},
    {{kTranslateY, 0.4, 3}, {kSharpness, 0.2, 6}}, {{kBrightness, 0.9, 6}, {kColour, 0.2, 8}},
    {{kSolarize, 0.5, 2}, {kInvert, 0}},           {{kEqualize, 0.2}, {kAutocontrast, 0.6}},
    {{kEqualize, 0.2}, {kEqualize, 0.6}},          {{kColour, 0.9, 9}, {kEqualize, 0.6}},
    {{kAutocontrast, 0.8}, {kSolarize, 0.2, 8}},   {{kBrightness, 0.1, 3}, {kColour, 0.7, 0}},
    {{kSolarize, 0.4, 5}, {kAutocontrast, 0.9}},   {{kTranslateY, 0.9, 9}, {kTranslateY, 0.7, 9}},
    {{kAutocontrast, 0.9}, {kSolarize, 0.8, 3}},   {{kEqualize, 0.8}, {kInvert, 0.1}},
    {{kTranslateY, 0.7, 9}, {kAutocontrast, 0.9}},
};

constexpr Pair kSvhnPairs[] = {
    {{kShearX, 0.9, 4}, {kInvert, 0.2}},          {{kShearY, 0.9, 8}, {kInvert, 0.7}},
    {{kEqualize, 0.6}, {kSolarize, 0.6, 6}},      {{kInvert, 0.9}, {kEqualize, 0.6}},
    {{kEqualize, 0.6}, {kRotate, 0.9, 3}},        {{kShearX, 0.9, 4}, {kAutocontrast, 0.8}},
    {{kShearY, 0.9, 8}, {kInvert, 0.4}},          {{kShearY, 0.9, 5}, {kSolarize, 0.2, 6}},
    {{kInvert, 0.9}, {kAutocontrast, 0.8}},       {{kEqualize, 0.6}, {kRotate, 0.9, 3}},
    {{kShearX, 0.9, 4}, {kSolarize, 0.3, 3}},     {{kShearY, 0.8, 8}, {kInvert, 0.7}},
    {{kEqualize, 0.9}, {kTranslateY, 0.6, 6}},    {{kInvert, 0.9}, {kEqualize, 0.6}},
    {{kContrast, 0.3, 3}, {kRotate, 0.8, 4}},     {{kInvert, 0.8}, {kTranslateY, 0, 2}},
    {{kShearY, 0.7, 6}, {kSolarize, 0.4, 8}},     {{kInvert, 0.6}, {kRotate, 0.8, 4}},
    {{kShearY, 0.3, 7}, {kTranslateX, 0.9, 3}},   {{kShearX, 0.1, 6}, {kInvert, 0.6}},
    {{kSolarize, 0.7, 2}, {kTranslateY, 0.6, 7}}, {{kShearY, 0.8, 4}, {kInvert, 0.8}},
    {{kShearX, 0.7, 9}, {kTranslateY, 0.8, 3}},   {{kShearY, 0.8, 5}, {kAutocontrast, 0.7}},
    {{kShearX, 0.7, 2}, {kInvert, 0.1}},
};

class AutoAugment : public Policy {
 public:
  explicit AutoAugment(std::span<const Pair> pairs) : pairs_(pairs) {}

  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    const Pair& pair = pairs_[random.below(std::ssize(pairs_))];
    std::vector<ImageStep> steps;
    for (const Choice& one : {pair.first, pair.second}) {
      const bool chosen = random.uniform() < one.probability;
      const double sign = draw_sign(random);
      constexpr int kBins = 10;
      if (chosen) {
        steps.push_back(torchvision_step(one.operation, {}, one.bin, kBins, sign, image));
      }
    }
    return {.chains = {{.steps = std::move(steps)}}};
  }

 private:
  const std::span<const Pair> pairs_;
};

template <const auto& kPairs>
std::unique_ptr<Policy> make_for(const std::vector<PolicySection>& sections) {
  refuse_sections(sections);
  return std::make_unique<AutoAugment>(kPairs);
}

}  // namespace
}  // namespace auto_augment

FLEET_POLICY(auto_augment, "AutoAugment") {
  def.make = auto_augment::make_for<auto_augment::kImageNetPairs>;
}
FLEET_POLICY(auto_augment_imagenet, "imagenet") {
  def.make = auto_augment::make_for<auto_augment::kImageNetPairs>;
}
FLEET_POLICY(auto_augment_cifar10, "cifar10") {
  def.make = auto_augment::make_for<auto_augment::kCifar10Pairs>;
}
FLEET_POLICY(auto_augment_svhn, "svhn") {
  def.make = auto_augment::make_for<auto_augment::kSvhnPairs>;
}

}  // namespace fleet::data
