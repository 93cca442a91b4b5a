// Turns images upside down at random, like torchvision's RandomVerticalFlip.
#include <algorithm>

#include "data/augment.h"

namespace fleet::data {
namespace {

class VerticalFlip : public Augment {
 public:
  explicit VerticalFlip(double probability) : probability_(probability) {}
  bool colours() const override { return true; }
  bool depends_on_place() const override { return true; }
  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    if (random.uniform() >= probability_) return;
    const int height = planes.image.height, width = planes.image.width;
    for (int c = 0; c < planes.image.channels; ++c) {
      float* rows = planes.channel(c);
      for (int y = 0; y < height / 2; ++y) {
        float* row = rows + int64_t{y} * width;
        std::swap_ranges(row, row + width, rows + int64_t{height - 1 - y} * width);
      }
    }
  }
  void move_mask(uint8_t* mask, const ImageShape& image, RandomStream& random) const override {
    if (random.uniform() >= probability_) return;
    for (int y = 0; y < image.height / 2; ++y) {
      uint8_t* row = mask + int64_t{y} * image.width;
      std::swap_ranges(row, row + image.width, mask + int64_t{image.height - 1 - y} * image.width);
    }
  }

 private:
  const double probability_;
};

}  // namespace

FLEET_AUGMENTATION(vertical_flip) {
  def.order = 22;
  def.schema.number("vertical_flip.probability", 0, 0, 1,
                    "Turn this fraction of the images upside down; 0: off");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    const double probability = settings.number("vertical_flip.probability");
    return probability > 0 ? std::make_unique<VerticalFlip>(probability) : nullptr;
  };
}

}  // namespace fleet::data
