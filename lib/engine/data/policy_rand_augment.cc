#include "data/policy_rand_augment.h"

#include "data/torchvision_steps.h"

namespace fleet::data {
namespace {

class RandAugmentPolicy : public Policy {
 public:
  RandAugmentPolicy(int operations, int magnitude, int bins)
      : operations_(operations), magnitude_(magnitude), bins_(bins) {}

  PolicyDraw draw(const ImageShape& image, RandomStream& random) const override {
    const std::span<const Operation> all = trivial_operations();
    std::vector<ImageStep> steps;
    for (int i = 0; i < operations_; ++i) {
      const Operation operation = all[random.below(std::ssize(all))];
      // Always drawn, so that one operation does not change the draws of the next.
      const double sign = draw_sign(random);
      steps.push_back(torchvision_step(operation, {}, magnitude_, bins_, sign, image));
    }
    return {.chains = {{.steps = std::move(steps)}}};
  }

 private:
  const int operations_, magnitude_, bins_;
};

// torchvision's defaults.
std::unique_ptr<Policy> make_usual_rand_augment(const std::vector<PolicySection>& sections) {
  refuse_sections(sections);
  return make_rand_augment(2, 9, 31);
}

}  // namespace

std::unique_ptr<Policy> make_rand_augment(int operations, int magnitude, int bins) {
  return std::make_unique<RandAugmentPolicy>(operations, magnitude, bins);
}

FLEET_POLICY(rand_augment, "RandAugment") { def.make = make_usual_rand_augment; }
FLEET_POLICY(rand_augment_flag, "ra") { def.make = make_usual_rand_augment; }

}  // namespace fleet::data
