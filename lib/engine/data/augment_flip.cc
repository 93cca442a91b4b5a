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

Schema flip_schema() {
  Schema schema;
  schema.boolean("flip", false, "Mirror half of the images left to right");
  return schema;
}

std::unique_ptr<Augment> make_flip(const Settings& settings, const ImageShape&) {
  return settings.boolean("flip") ? std::make_unique<Flip>() : nullptr;
}

}  // namespace
FLEET_AUGMENTATION(flip) {
  def.order = 20;
  def.train = true;
  def.schema = flip_schema;
  def.make = make_flip;
}

}  // namespace fleet::data
