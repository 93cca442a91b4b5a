// Blurs some images by a random strength, like torchvision's GaussianBlur within RandomApply.
#include <algorithm>

#include "base/error.h"
#include "data/adjust_image.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

class GaussianBlur : public Augment {
 public:
  GaussianBlur(double probability, int kernel_size, std::vector<double> sigma)
      : probability_(probability), kernel_size_(kernel_size), sigma_(std::move(sigma)) {}
  bool colours() const override { return true; }
  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    if (random.uniform() >= probability_) return;
    gaussian_blur(planes, kernel_size_, random.uniform(sigma_[0], sigma_[1]));
  }

 private:
  const double probability_;
  const int kernel_size_;
  const std::vector<double> sigma_;
};

}  // namespace

FLEET_AUGMENTATION(gaussian_blur) {
  def.order = 34;
  def.schema
      .number("gaussian_blur.probability", 0, 0, 1, "Blur this fraction of the images; 0: off")
      .integer("gaussian_blur.kernel_size", 23, 1, 1001,
               "Pixels that the blur covers in each direction: an odd number, as torchvision's "
               "kernel_size")
      .numbers("gaussian_blur.sigma", {0.1, 2},
               "Deviation of the blur in pixels: minimum and maximum");
  def.make = [](const Settings& settings, const ImageShape& image) -> std::unique_ptr<Augment> {
    const double probability = settings.number("gaussian_blur.probability");
    if (probability == 0) return nullptr;
    const auto size = static_cast<int>(settings.integer("gaussian_blur.kernel_size"));
    const char* key = "data.augment.gaussian_blur.kernel_size";
    if (size % 2 == 0) {
      throw Error(ErrorCode::kUsage, std::to_string(size) + " is even", key,
                  "set it to an odd number, such as " + std::to_string(size - 1));
    }
    const int most = 2 * std::min(image.height, image.width) - 1;
    if (size > most) {
      throw Error(ErrorCode::kUsage,
                  "a blur of " + std::to_string(size) +
                      " pixels is too wide for "
                      "images of " +
                      image.text(),
                  key, "set it to at most " + std::to_string(most));
    }
    return std::make_unique<GaussianBlur>(probability, size,
                                          range_of(settings, "gaussian_blur.sigma", 1000));
  };
}

}  // namespace fleet::data
