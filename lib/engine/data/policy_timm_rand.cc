// timm's RandAugment: "rand", then sections: "rand-m9-n2-p0.5-mstd0.5-mmax10-inc1-t3a".
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "data/policy.h"
#include "data/timm_operation.h"

namespace fleet::data {
namespace {

struct Weighted {
  std::string_view name;
  double weight = 1;
};
using WeightedNames = std::vector<Weighted>;

// The sets of operations.
const WeightedNames& growing_names() {
  static const WeightedNames all = {{"AutoContrast"},
                                    {"Equalize"},
                                    {"Invert"},
                                    {"Rotate"},
                                    {"PosterizeIncreasing"},
                                    {"SolarizeIncreasing"},
                                    {"SolarizeAdd"},
                                    {"ColorIncreasing"},
                                    {"ContrastIncreasing"},
                                    {"BrightnessIncreasing"},
                                    {"SharpnessIncreasing"},
                                    {"ShearX"},
                                    {"ShearY"},
                                    {"TranslateXRel"},
                                    {"TranslateYRel"}};
  return all;
}

// Without "inc1" some operations have other strengths.
WeightedNames first_names() {
  constexpr std::string_view kGrowing = "Increasing";
  WeightedNames names = growing_names();
  for (Weighted& one : names) {
    if (one.name.ends_with(kGrowing)) one.name.remove_suffix(kGrowing.size());
  }
  return names;
}

const WeightedNames& by_effect_names() {
  static const WeightedNames all = {{"Rotate", 3},
                                    {"ShearX", 2},
                                    {"ShearY", 2},
                                    {"TranslateXRel", 1},
                                    {"TranslateYRel", 1},
                                    {"ColorIncreasing", 0.25},
                                    {"SharpnessIncreasing", 0.25},
                                    {"AutoContrast", 0.25},
                                    {"SolarizeIncreasing", 0.05},
                                    {"SolarizeAdd", 0.05},
                                    {"ContrastIncreasing", 0.05},
                                    {"BrightnessIncreasing", 0.05},
                                    {"Equalize", 0.05},
                                    {"PosterizeIncreasing", 0.05},
                                    {"Invert", 0.05}};
  return all;
}

const WeightedNames& three_names() {
  static const WeightedNames all = {{"SolarizeIncreasing"}, {"Desaturate"}, {"GaussianBlur"}};
  return all;
}

const WeightedNames& three_and_more_names() {
  static const WeightedNames all = {{"SolarizeIncreasing", 6},
                                    {"Desaturate", 6},
                                    {"GaussianBlur", 6},
                                    {"Rotate", 3},
                                    {"ShearX", 2},
                                    {"ShearY", 2},
                                    {"PosterizeIncreasing", 1},
                                    {"AutoContrast", 1},
                                    {"ColorIncreasing", 1},
                                    {"SharpnessIncreasing", 1},
                                    {"ContrastIncreasing", 1},
                                    {"BrightnessIncreasing", 1},
                                    {"Equalize", 1},
                                    {"Invert", 1}};
  return all;
}

class TimmRandAugment : public Policy {
 public:
  // repeats: one image may get an operation twice.
  TimmRandAugment(const WeightedNames& names, bool repeats, int count, const TimmUse& use)
      : repeats_(repeats), count_(count), use_(use) {
    for (const Weighted& one : names) {
      operations_.push_back(&timm_operation(one.name));
      weights_.push_back(one.weight);
    }
  }

  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    std::vector<double> weights = weights_;
    std::vector<ImageStep> steps;
    for (int i = 0; i < count_; ++i) {
      const size_t chosen = draw_index(weights, random);
      if (!repeats_) weights[chosen] = 0;
      const auto step = draw_timm_step(*operations_[chosen], use_, image, random);
      if (step) steps.push_back(*step);
    }
    return {.chains = {{.steps = std::move(steps)}}};
  }

 private:
  static size_t draw_index(const std::vector<double>& weights, RandomStream& random) {
    double rest = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t last = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      if (rest < weights[i]) return i;
      rest -= weights[i];
      last = i;
    }
    return last;  // after rounding
  }

  const bool repeats_;
  const int count_;
  const TimmUse use_;
  std::vector<const TimmOperation*> operations_;
  std::vector<double> weights_;
};

std::unique_ptr<Policy> make_timm_rand(const std::vector<PolicySection>& sections) {
  constexpr int kMost = 1000;
  TimmUse use{.probability = 0.5};
  bool growing = false;
  int count = 2;
  PolicySection set;
  for (const PolicySection& one : sections) {
    if (one.name == "m")
      use.magnitude = section_integer(one, 0, kMost);
    else if (one.name == "n")
      count = section_integer(one, 1, 100);
    else if (one.name == "p")
      use.probability = section_number(one, 0, 1);
    else if (one.name == "mstd")
      use.deviation = section_number(one, 0, 1e9);
    else if (one.name == "mmax")
      use.most = section_integer(one, 1, kMost);
    else if (one.name == "inc")
      growing = section_integer(one, 0, 1) == 1;
    else if (one.name == "t")
      set = one;
    else
      refuse_section(one, "m, n, p, mstd, mmax, inc, t");
  }
  use.any_magnitude = use.deviation > 100;
  if (set.name.empty()) {
    return std::make_unique<TimmRandAugment>(growing ? growing_names() : first_names(), true, count,
                                             use);
  }
  if (set.value == "3a") {
    return std::make_unique<TimmRandAugment>(three_names(), true, count, use);
  }
  if (set.value != "weights" && set.value != "3aw") {
    refuse_section(set, "tweights, t3a, t3aw");
  }
  const WeightedNames& names = set.value == "3aw" ? three_and_more_names() : by_effect_names();
  if (count > std::ssize(names)) {
    throw Error(ErrorCode::kUsage,
                "n" + std::to_string(count) + " is more than the " + std::to_string(names.size()) +
                    " operations of t" + set.value + ", each of which is applied once at most",
                "data.augment.policy");
  }
  return std::make_unique<TimmRandAugment>(names, false, count, use);
}

}  // namespace

FLEET_POLICY(timm_rand, "rand") { def.make = make_timm_rand; }

}  // namespace fleet::data
