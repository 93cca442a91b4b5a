// Resizes the short side, then crops the centre: the evaluation of images. Matches torchvision's
// Resize(n) and CenterCrop to the pixel.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

class Resize : public Augment {
 public:
  explicit Resize(int side) : side_(side) {}
  bool sets_crop() const override { return true; }

  void set_geometry(CropGeometry& p, RandomStream&) const override {
    const int shorter = std::min(p.source_height, p.source_width);
    const auto resized = [&](int side) {
      return std::max<int64_t>(side_, int64_t{side_} * side / shorter);
    };
    const int64_t height = resized(p.source_height), width = resized(p.source_width);
    const double y_scale = double(p.source_height) / double(height);
    const double x_scale = double(p.source_width) / double(width);
    // lrint rounds halves to even, as Python's round() does.
    p.y = double(std::lrint(double(height - p.out_height) / 2)) * y_scale;
    p.x = double(std::lrint(double(width - p.out_width) / 2)) * x_scale;
    p.height = p.out_height * y_scale;
    p.width = p.out_width * x_scale;
    p.crop_set = true;
  }

 private:
  int side_;
};

}  // namespace

FLEET_AUGMENTATION(resize) {
  def.order = 10;
  def.evaluation = true;
  def.schema.integer(
      "resize", 0, 0, 65536,
      "Resize the image's shorter side to this number of pixels, then crop data.image's size from "
      "the centre (ImageNet's recipe: 256); 0: off");
  def.make = [](const Settings& settings, const ImageShape& image) -> std::unique_ptr<Augment> {
    const auto side = static_cast<int>(settings.integer("resize"));
    if (side == 0) return nullptr;
    if (side < image.height || side < image.width) {
      throw Error(ErrorCode::kUsage,
                  "images resized to " + std::to_string(side) + " are smaller than data.image (" +
                      image.text() + ")",
                  settings.origin("resize"),
                  "set data.image.height and data.image.width to at most " + std::to_string(side) +
                      ", or 'resize' to at least " +
                      std::to_string(std::max(image.height, image.width)));
    }
    return std::make_unique<Resize>(side);
  };
}

}  // namespace fleet::data
