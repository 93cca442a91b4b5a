// Applies randomly chosen operations of one strength to each image (Cubuk et al., "RandAugment:
// Practical automated data augmentation with a reduced search space", 2019), like torchvision's
// RandAugment.
#include "data/augment.h"

#include <array>
#include <cmath>

#include "base/error.h"
#include "data/adjust_image.h"

namespace fleet::data {
namespace {

// torch.linspace(0, end, bins)[at].
double at_bin(double end, int at, int bins) {
  const auto last = static_cast<float>(end);
  const float step = last / static_cast<float>(bins - 1);
  if (at < bins / 2) return step * static_cast<float>(at);
  return last - step * static_cast<float>(bins - at - 1);
}

class RandAugment : public Augment {
 public:
  RandAugment(int operations, int magnitude, int bins)
      : operations_(operations), magnitude_(magnitude), bins_(bins) {}
  bool colours() const override { return true; }
  bool depends_on_place() const override { return true; }

  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    for (int i = 0; i < operations_; ++i) {
      const int64_t which = random.below(kOperations.size());
      // Always drawn, so that one operation does not change the draws of the next.
      const double sign = random.uniform() <= 0.5 ? -1 : 1;
      (this->*kOperations[which])(planes, sign);
    }
  }

 private:
  using Operation = void (RandAugment::*)(const ImagePlanes&, double sign) const;
  static const std::array<Operation, 14> kOperations;

  double strength(double end) const { return at_bin(end, magnitude_, bins_); }
  float factor(double sign) const { return static_cast<float>(1 + sign * strength(0.9)); }
  static constexpr double kFarthest = 150.0 / 331;  // share of the image's side, as in the paper

  void identity(const ImagePlanes&, double) const {}
  void shear_x(const ImagePlanes& planes, double sign) const {
    shear(planes, sign * strength(0.3), 0);
  }
  void shear_y(const ImagePlanes& planes, double sign) const {
    shear(planes, 0, sign * strength(0.3));
  }
  void translate_x(const ImagePlanes& planes, double sign) const {
    translate(planes, static_cast<int>(sign * strength(kFarthest * planes.image.width)), 0);
  }
  void translate_y(const ImagePlanes& planes, double sign) const {
    translate(planes, 0, static_cast<int>(sign * strength(kFarthest * planes.image.height)));
  }
  void turn(const ImagePlanes& planes, double sign) const { rotate(planes, sign * strength(30)); }
  void brightness(const ImagePlanes& planes, double sign) const {
    adjust_brightness(planes, factor(sign));
  }
  void colour_strength(const ImagePlanes& planes, double sign) const {
    adjust_saturation(planes, factor(sign));
  }
  void contrast(const ImagePlanes& planes, double sign) const {
    adjust_contrast(planes, factor(sign));
  }
  void sharpness(const ImagePlanes& planes, double sign) const {
    adjust_sharpness(planes, factor(sign));
  }
  void fewer_bits(const ImagePlanes& planes, double) const {
    const float share = static_cast<float>(magnitude_) / (static_cast<float>(bins_ - 1) / 4);
    posterize(planes, static_cast<int>(std::lrint(8 - share)));  // halves to even, as torch rounds
  }
  void inverted(const ImagePlanes& planes, double) const {
    solarize(planes, static_cast<float>(strength_from_one()));
  }
  void stretched(const ImagePlanes& planes, double) const { autocontrast(planes); }
  void equalized(const ImagePlanes& planes, double) const { equalize(planes); }

  // torch.linspace(1, 0, bins)[magnitude].
  double strength_from_one() const {
    const float step = -1 / static_cast<float>(bins_ - 1);
    if (magnitude_ < bins_ / 2) return 1 + step * static_cast<float>(magnitude_);
    return -step * static_cast<float>(bins_ - magnitude_ - 1);
  }

  int operations_, magnitude_, bins_;
};

// In the order of torchvision's _AUGMENTATION_SPACE.
const std::array<RandAugment::Operation, 14> RandAugment::kOperations = {
    &RandAugment::identity,    &RandAugment::shear_x,         &RandAugment::shear_y,
    &RandAugment::translate_x, &RandAugment::translate_y,     &RandAugment::turn,
    &RandAugment::brightness,  &RandAugment::colour_strength, &RandAugment::contrast,
    &RandAugment::sharpness,   &RandAugment::fewer_bits,      &RandAugment::inverted,
    &RandAugment::stretched,   &RandAugment::equalized,
};

}  // namespace

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
    return std::make_unique<RandAugment>(operations, magnitude, bins);
  };
}

}  // namespace fleet::data
