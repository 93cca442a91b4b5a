// Augmentation policies: which operations change an image, drawn at random. A new policy is one new
// file with one FLEET_POLICY for each name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "data/image_operation.h"

namespace fleet::data {

// The draw of a policy for one image: own * image + the sum of weight * image after its steps.
struct PolicyDraw {
  struct Chain {
    float weight = 1;
    std::vector<ImageStep> steps;
  };
  float own = 0;
  std::vector<Chain> chains;
};

class Policy {
 public:
  virtual ~Policy() = default;
  // Thread-safe.
  virtual PolicyDraw draw(const ImageShape& image, RandomStream& random) const = 0;
};

void apply(const PolicyDraw& draw, const ImagePlanes& planes);

// "mstd" and "0.5" of the section "mstd0.5".
struct PolicySection {
  std::string name, value;
};

struct PolicyDef {
  // sections: what follows the name, each after a hyphen. kUsage for one that the policy lacks.
  std::function<std::unique_ptr<Policy>(const std::vector<PolicySection>& sections)> make;
};

Registry<PolicyDef>& policies();

// FLEET_POLICY(three_augment, "3a") { def.make = ...; } in lib/engine/data/policy_*.cc.
#define FLEET_POLICY(id, name) \
  FLEET_REGISTER(policy_##id, ::fleet::data::PolicyDef& def, ::fleet::data::policies().define, name)

// The policy of data.augment.policy: a name, then sections: "rand-m9-mstd0.5-inc1". kUsage if the
// name or a section is unknown.
std::unique_ptr<Policy> make_policy(const std::string& text);

// The augmentation that applies a policy to each image.
std::unique_ptr<Augment> make_policy_augment(std::unique_ptr<Policy> policy);

// For policies: the value of a section, within the limits. kUsage otherwise.
double section_number(const PolicySection& section, double least, double most);
int section_integer(const PolicySection& section, int least, int most);
[[noreturn]] void refuse_section(const PolicySection& section, const std::string& known);
// For policies without sections.
void refuse_sections(const std::vector<PolicySection>& sections);

}  // namespace fleet::data
