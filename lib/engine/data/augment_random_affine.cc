// Rotates, shifts, scales and shears images at random, like torchvision's RandomAffine and
// RandomRotation.
#include <cmath>

#include "base/error.h"
#include "data/adjust_image.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

struct AffineRanges {
  double degrees = 0, shear = 0;
  std::vector<double> translate, scale;
  Sampling sampling;
};

class RandomAffine : public Augment {
 public:
  explicit RandomAffine(AffineRanges ranges) : ranges_(std::move(ranges)) {}
  bool colours() const override { return true; }
  bool depends_on_place() const override { return true; }
  bool refuses_masks() const override { return true; }

  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    const auto both = [&](double most) { return random.uniform(-most, most); };
    // All are drawn, so that one range does not change the draws of another.
    Affine by{.degrees = both(ranges_.degrees)};
    by.right = std::nearbyint(both(ranges_.translate[0] * planes.image.width));
    by.down = std::nearbyint(both(ranges_.translate[1] * planes.image.height));
    by.scale = random.uniform(ranges_.scale[0], ranges_.scale[1]);
    by.shear_x = both(ranges_.shear);
    move(planes, by, ranges_.sampling);
  }

 private:
  const AffineRanges ranges_;
};

}  // namespace

FLEET_AUGMENTATION(random_affine) {
  def.order = 24;
  def.schema.number("random_affine.degrees", 0, 0, 180, "Rotate by an angle from -x to x degrees")
      .numbers("random_affine.translate", {0, 0},
               "Shift by at most these shares of the width and the height")
      .numbers("random_affine.scale", {1, 1}, "Scale by a factor: minimum and maximum")
      .number("random_affine.shear", 0, 0, 89, "Shear along the width, by -x to x degrees")
      .choice("random_affine.interpolation", "nearest", {"nearest", "bilinear"},
              "Filter of moved pixels; those from outside the image are black");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    AffineRanges ranges{.degrees = settings.number("random_affine.degrees"),
                        .shear = settings.number("random_affine.shear"),
                        .translate = settings.numbers("random_affine.translate"),
                        .scale = range_of(settings, "random_affine.scale", 100),
                        .sampling = {}};
    const std::vector<double>& shift = ranges.translate;
    if (shift.size() != 2 || shift[0] < 0 || shift[1] < 0 || shift[0] > 1 || shift[1] > 1) {
      throw Error(ErrorCode::kUsage, "not two shares", "data.augment.random_affine.translate",
                  "give [width, height], each from 0 to 1");
    }
    const bool still =
        shift[0] == 0 && shift[1] == 0 && ranges.scale[0] == 1 && ranges.scale[1] == 1;
    if (still && ranges.degrees == 0 && ranges.shear == 0) return nullptr;
    if (settings.text("random_affine.interpolation") == "bilinear") {
      ranges.sampling.filter = Sampling::Filter::kBilinear;
    }
    return std::make_unique<RandomAffine>(std::move(ranges));
  };
}

}  // namespace fleet::data
