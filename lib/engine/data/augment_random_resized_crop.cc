// Resizes a box of random area and aspect ratio to the output (Szegedy et al., "Going Deeper with
// Convolutions", 2014; drawn like torchvision's RandomResizedCrop).
#include <cmath>

#include "data/augment.h"

namespace fleet::data {
namespace {

class RandomResizedCrop : public Augment {
 public:
  RandomResizedCrop(std::vector<double> scale, std::vector<double> ratio)
      : scale_(std::move(scale)), ratio_(std::move(ratio)) {}
  bool sets_crop() const override { return true; }

  void set_geometry(CropGeometry& p, RandomStream& random) const override {
    const double area = double(p.source_height) * p.source_width;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target = area * random.uniform(scale_[0], scale_[1]);
      const double ratio = std::exp(random.uniform(std::log(ratio_[0]), std::log(ratio_[1])));
      const int width = static_cast<int>(std::lround(std::sqrt(target * ratio)));
      const int height = static_cast<int>(std::lround(std::sqrt(target / ratio)));
      if (width > 0 && height > 0 && width <= p.source_width && height <= p.source_height) {
        const auto y = static_cast<int>(random.below(p.source_height - height + 1));
        const auto x = static_cast<int>(random.below(p.source_width - width + 1));
        return set(p, x, y, width, height);
      }
    }
    // No drawn box fits: use the largest central one with an allowed ratio.
    int width = p.source_width, height = p.source_height;
    if (double(width) / height < ratio_[0]) {
      height = std::min(height, std::max(1, static_cast<int>(std::lround(width / ratio_[0]))));
    } else if (double(width) / height > ratio_[1]) {
      width = std::min(width, std::max(1, static_cast<int>(std::lround(height * ratio_[1]))));
    }
    set(p, (p.source_width - width) / 2, (p.source_height - height) / 2, width, height);
  }

 private:
  static void set(CropGeometry& p, int x, int y, int width, int height) {
    p.x = p.tap_x = x;
    p.y = p.tap_y = y;
    p.width = p.tap_width = width;
    p.height = p.tap_height = height;
    p.crop_set = true;
  }

  std::vector<double> scale_, ratio_;
};

}  // namespace

FLEET_AUGMENTATION(random_resized_crop) {
  def.order = 10;
  def.schema
      .boolean("random_resized_crop", false,
               "Crop a random box and resize it to data.image's size (ImageNet's recipe)")
      .numbers("random_resized_crop_scale", {0.08, 1.0},
               "The box's share of the image's area: minimum and maximum")
      .numbers("random_resized_crop_ratio", {3.0 / 4, 4.0 / 3},
               "The box's width / height: minimum and maximum");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    if (!settings.boolean("random_resized_crop")) return nullptr;
    return std::make_unique<RandomResizedCrop>(
        range_of(settings, "random_resized_crop_scale", 1),
        range_of(settings, "random_resized_crop_ratio", 1000));
  };
}

}  // namespace fleet::data
