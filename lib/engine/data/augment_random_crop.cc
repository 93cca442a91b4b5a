// Adds black edges to the image and crops it to the output's size at a random place: CIFAR's recipe
// (He et al., "Deep Residual Learning for Image Recognition", 2015, section 4.2).
#include "data/augment.h"

namespace fleet::data {
namespace {

class RandomCrop : public Augment {
 public:
  explicit RandomCrop(int padding) : padding_(padding) {}
  bool sets_crop() const override { return true; }

  void set_geometry(CropGeometry& p, RandomStream& random) const override {
    const int rows = p.source_height + 2 * padding_ - p.out_height;
    const int columns = p.source_width + 2 * padding_ - p.out_width;
    if (rows < 0 || columns < 0) return;  // the chain reports that sizes do not match
    p.y = static_cast<double>(random.below(rows + 1)) - padding_;
    p.x = static_cast<double>(random.below(columns + 1)) - padding_;
    p.height = p.out_height;
    p.width = p.out_width;
    p.crop_set = true;
  }

 private:
  int padding_;
};

}  // namespace

FLEET_AUGMENTATION(random_crop) {
  def.order = 10;
  def.schema.integer(
      "random_crop_padding", 0, 0, 4096,
      "Pad images with this number of black pixels on each side, then crop data.image's "
      "size at a random place (CIFAR's recipe: 4); 0: off");
  def.make = [](const Settings& settings, const ImageShape&) {
    const auto padding = static_cast<int>(settings.integer("random_crop_padding"));
    return padding > 0 ? std::make_unique<RandomCrop>(padding) : nullptr;
  };
}

}  // namespace fleet::data
