// timm's versions of AutoAugment, and 3-Augment (Touvron et al., "DeiT III: Revenge of the ViT",
// 2022): a name, then perhaps "mstd0.5", the deviation of the magnitudes.
#include <span>

#include "data/policy.h"
#include "data/timm_operation.h"

namespace fleet::data {
namespace timm_auto_augment {
namespace {

struct Choice {
  std::string_view name;
  double probability = 0, magnitude = 0;
};
struct Pair {
  Choice first, second;  // the second may lack a name
};

// Of the TPU implementation of EfficientNet.
constexpr Pair kV0[] = {
    {{"Equalize", 0.8, 1}, {"ShearY", 0.8, 4}},
    {{"Color", 0.4, 9}, {"Equalize", 0.6, 3}},
    {{"Color", 0.4, 1}, {"Rotate", 0.6, 8}},
    {{"Solarize", 0.8, 3}, {"Equalize", 0.4, 7}},
    {{"Solarize", 0.4, 2}, {"Solarize", 0.6, 2}},
    {{"Color", 0.2, 0}, {"Equalize", 0.8, 8}},
    {{"Equalize", 0.4, 8}, {"SolarizeAdd", 0.8, 3}},
    {{"ShearX", 0.2, 9}, {"Rotate", 0.6, 8}},
    {{"Color", 0.6, 1}, {"Equalize", 1, 2}},
    {{"Invert", 0.4, 9}, {"Rotate", 0.6, 0}},
    {{"Equalize", 1, 9}, {"ShearY", 0.6, 3}},
    {{"Color", 0.4, 7}, {"Equalize", 0.6, 0}},
    {{"Posterize", 0.4, 6}, {"AutoContrast", 0.4, 7}},
    {{"Solarize", 0.6, 8}, {"Color", 0.6, 9}},
    {{"Solarize", 0.2, 4}, {"Rotate", 0.8, 9}},
    {{"Rotate", 1, 7}, {"TranslateYRel", 0.8, 9}},
    {{"ShearX", 0, 0}, {"Solarize", 0.8, 4}},
    {{"ShearY", 0.8, 0}, {"Color", 0.6, 4}},
    {{"Color", 1, 0}, {"Rotate", 0.6, 2}},
    {{"Equalize", 0.8, 4}, {"Equalize", 0, 8}},
    {{"Equalize", 1, 4}, {"AutoContrast", 0.6, 2}},
    {{"ShearY", 0.4, 7}, {"SolarizeAdd", 0.6, 7}},
    {{"Posterize", 0.8, 2}, {"Solarize", 0.6, 10}},
    {{"Solarize", 0.6, 8}, {"Equalize", 0.6, 1}},
    {{"Color", 0.8, 6}, {"Rotate", 0.4, 5}},
};

// Of the paper.
constexpr Pair kOriginal[] = {
    {{"PosterizeOriginal", 0.4, 8}, {"Rotate", 0.6, 9}},
    {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, 5}},
    {{"Equalize", 0.8, 8}, {"Equalize", 0.6, 3}},
    {{"PosterizeOriginal", 0.6, 7}, {"PosterizeOriginal", 0.6, 6}},
    {{"Equalize", 0.4, 7}, {"Solarize", 0.2, 4}},
    {{"Equalize", 0.4, 4}, {"Rotate", 0.8, 8}},
    {{"Solarize", 0.6, 3}, {"Equalize", 0.6, 7}},
    {{"PosterizeOriginal", 0.8, 5}, {"Equalize", 1, 2}},
    {{"Rotate", 0.2, 3}, {"Solarize", 0.6, 8}},
    {{"Equalize", 0.6, 8}, {"PosterizeOriginal", 0.4, 6}},
    {{"Rotate", 0.8, 8}, {"Color", 0.4, 0}},
    {{"Rotate", 0.4, 9}, {"Equalize", 0.6, 2}},
    {{"Equalize", 0, 7}, {"Equalize", 0.8, 8}},
    {{"Invert", 0.6, 4}, {"Equalize", 1, 8}},
    {{"Color", 0.6, 4}, {"Contrast", 1, 8}},
    {{"Rotate", 0.8, 8}, {"Color", 1, 2}},
    {{"Color", 0.8, 8}, {"Solarize", 0.8, 7}},
    {{"Sharpness", 0.4, 7}, {"Invert", 0.6, 8}},
    {{"ShearX", 0.6, 5}, {"Equalize", 1, 9}},
    {{"Color", 0.4, 0}, {"Equalize", 0.6, 3}},
    {{"Equalize", 0.4, 7}, {"Solarize", 0.2, 4}},
    {{"Solarize", 0.6, 5}, {"AutoContrast", 0.6, 5}},
    {{"Invert", 0.6, 4}, {"Equalize", 1, 8}},
    {{"Color", 0.6, 4}, {"Contrast", 1, 8}},
    {{"Equalize", 0.8, 8}, {"Equalize", 0.6, 3}},
};

constexpr Pair k3Augment[] = {
    {{"Solarize", 1, 5}, {}},
    {{"Desaturate", 1, 10}, {}},
    {{"GaussianBlurRand", 1, 10}, {}},
};

class TimmAutoAugment : public Policy {
 public:
  // fewer_bits: posterize keeps fewer bits with a greater magnitude, as in timm's policies whose
  // names end in r.
  TimmAutoAugment(std::span<const Pair> pairs, bool fewer_bits, double deviation)
      : pairs_(pairs), fewer_bits_(fewer_bits), deviation_(deviation) {}

  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    const Pair& pair = pairs_[random.below(std::ssize(pairs_))];
    std::vector<ImageStep> steps;
    for (const Choice& one : {pair.first, pair.second}) {
      if (one.name.empty()) continue;
      const bool other = fewer_bits_ && one.name.starts_with("Posterize");
      const auto step = draw_timm_step(
          timm_operation(other ? "PosterizeIncreasing" : one.name),
          {.probability = one.probability, .magnitude = one.magnitude, .deviation = deviation_},
          image, random);
      if (step) steps.push_back(*step);
    }
    return {.chains = {{.steps = std::move(steps)}}};
  }

 private:
  const std::span<const Pair> pairs_;
  const bool fewer_bits_;
  const double deviation_;
};

template <const auto& kPairs, bool kFewerBits>
std::unique_ptr<Policy> make_for(const std::vector<PolicySection>& sections) {
  double deviation = 0;
  for (const PolicySection& one : sections) {
    if (one.name != "mstd") refuse_section(one, "mstd");
    deviation = section_number(one, 0, 1e9);
  }
  return std::make_unique<TimmAutoAugment>(kPairs, kFewerBits, deviation);
}

}  // namespace
}  // namespace timm_auto_augment

namespace timm = timm_auto_augment;
FLEET_POLICY(timm_v0, "v0") { def.make = timm::make_for<timm::kV0, false>; }
FLEET_POLICY(timm_v0r, "v0r") { def.make = timm::make_for<timm::kV0, true>; }
FLEET_POLICY(timm_original, "original") { def.make = timm::make_for<timm::kOriginal, false>; }
FLEET_POLICY(timm_originalr, "originalr") { def.make = timm::make_for<timm::kOriginal, true>; }
FLEET_POLICY(timm_3a, "3a") { def.make = timm::make_for<timm::k3Augment, false>; }

}  // namespace fleet::data
