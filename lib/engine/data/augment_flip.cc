// Mirrors every other image left to right, at random.
#include "data/augment.h"

namespace fleet::data {
namespace {

class Flip : public Augment {
 public:
  void set_geometry(CropGeometry& p, RandomStream& random) const override {
    p.flip ^= random.below(2) == 1;
  }
};

}  // namespace

FLEET_AUGMENTATION(flip) {
  def.order = 20;
  def.schema.boolean("flip", false, "Mirror half of the images left to right");
  def.make = [](const Settings& settings, const ImageShape&) {
    return settings.boolean("flip") ? std::make_unique<Flip>() : nullptr;
  };
}

}  // namespace fleet::data
