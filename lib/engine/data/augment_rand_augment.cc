// Applies randomly chosen operations of one strength to each image, like torchvision's RandAugment.
#include "data/augment.h"

#include "base/error.h"
#include "data/policy_rand_augment.h"

namespace fleet::data {
FLEET_AUGMENTATION(rand_augment) {
  def.order = 25;
  def.schema
      .integer("rand_augment.operations", 0, 0, 100,
               "RandAugment: number of operations on each image, drawn from 14 (usual: 2); 0: off")
      .integer("rand_augment.magnitude", 9, 0, 1000,
               "RandAugment: strength of all operations, from 0 to bins - 1")
      .integer("rand_augment.bins", 31, 2, 1001, "RandAugment: number of strengths");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    const auto operations = static_cast<int>(settings.integer("rand_augment.operations"));
    const auto magnitude = static_cast<int>(settings.integer("rand_augment.magnitude"));
    const auto bins = static_cast<int>(settings.integer("rand_augment.bins"));
    if (operations == 0) return nullptr;
    if (magnitude >= bins) {
      throw Error(
          ErrorCode::kUsage,
          "a magnitude of " + std::to_string(magnitude) + " with " + std::to_string(bins) + " bins",
          "data.augment.rand_augment.magnitude", "set it to at most " + std::to_string(bins - 1));
    }
    return make_policy_augment(make_rand_augment(operations, magnitude, bins));
  };
}

}  // namespace fleet::data
