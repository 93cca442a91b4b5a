// Resizes the image by a random factor, then crops the output at a random place and fills what lies
// to the right of a smaller image or below it: torchvision's recipe for segmentation (RandomResize,
// RandomCrop).
#include <algorithm>

#include "data/augment.h"

namespace fleet::data {
namespace {

class RandomResize : public Augment {
 public:
  RandomResize(int least, int most) : least_(least), most_(most) {}
  bool sets_crop() const override { return true; }

  void set_geometry(CropGeometry& p, RandomStream& random) const override {
    const int64_t side = least_ + random.below(most_ - least_ + 1);
    const int64_t shorter = std::min(p.source_height, p.source_width);
    const auto resized = [&](int64_t from) {
      constexpr int64_t kLongest = 1 << 30;
      return static_cast<int>(std::clamp<int64_t>(side * from / shorter, 1, kLongest));
    };
    p.resized_height = resized(p.source_height);
    p.resized_width = resized(p.source_width);
    const auto offset = [&](int all, int out) {
      return all > out ? static_cast<int>(random.below(all - out + 1)) : 0;
    };
    p.resized_y = offset(p.resized_height, p.out_height);
    p.resized_x = offset(p.resized_width, p.out_width);
    const double y_scale = double(p.source_height) / p.resized_height;
    const double x_scale = double(p.source_width) / p.resized_width;
    p.y = p.resized_y * y_scale;
    p.x = p.resized_x * x_scale;
    p.height = p.out_height * y_scale;
    p.width = p.out_width * x_scale;
    p.crop_set = true;
  }

 private:
  const int least_, most_;
};

}  // namespace

FLEET_AUGMENTATION(random_resize) {
  def.order = 10;
  def.schema.numbers(
      "random_resize", {},
      "Resize images so that the shorter side has a random number of pixels from this minimum to "
      "this maximum, then crop data.image's size at a random place, filled with black where the "
      "image is smaller (torchvision's recipe for segmentation: [260, 1040])");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    if (settings.numbers("random_resize").empty()) return nullptr;
    const std::vector<double> range = range_of(settings, "random_resize", 65536);
    return std::make_unique<RandomResize>(std::max(1, static_cast<int>(range[0])),
                                          std::max(1, static_cast<int>(range[1])));
  };
}

}  // namespace fleet::data
