// Fills a random rectangle (Zhong et al., "Random Erasing Data Augmentation", 2017), drawn like
// torchvision's RandomErasing.
#include <algorithm>
#include <cmath>

#include "data/augment.h"

namespace fleet::data {
namespace {

struct Box {
  int x = 0, y = 0, width = 0, height = 0;
};

class RandomErasing : public Augment {
 public:
  RandomErasing(double probability, std::vector<double> scale, std::vector<double> ratio,
                bool noise)
      : probability_(probability),
        scale_(std::move(scale)),
        ratio_(std::move(ratio)),
        noise_(noise) {}
  bool colours() const override { return true; }
  bool depends_on_place() const override { return true; }

  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    if (random.uniform() >= probability_) return;
    const Box box = draw(planes.image, random);
    for (int c = 0; c < planes.image.channels; ++c) {
      const auto mean = static_cast<float>(planes.mean[c]);
      float* row = planes.channel(c) + int64_t{box.y} * planes.image.width + box.x;
      for (int y = 0; y < box.height; ++y, row += planes.image.width) {
        if (!noise_) {
          std::fill_n(row, box.width, mean);
          continue;
        }
        for (int x = 0; x < box.width; ++x) {
          row[x] = mean + static_cast<float>(planes.deviation[c] * random.normal());
        }
      }
    }
  }

 private:
  // Empty if no drawn box fits.
  Box draw(const ImageShape& image, RandomStream& random) const {
    const double area = double(image.height) * image.width;
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double erased = area * random.uniform(scale_[0], scale_[1]);
      const double ratio = std::exp(random.uniform(std::log(ratio_[0]), std::log(ratio_[1])));
      const auto height = static_cast<int>(std::lrint(std::sqrt(erased * ratio)));
      const auto width = static_cast<int>(std::lrint(std::sqrt(erased / ratio)));
      if (height >= image.height || width >= image.width) continue;
      const auto y = static_cast<int>(random.below(image.height - height + 1));
      const auto x = static_cast<int>(random.below(image.width - width + 1));
      return {x, y, width, height};
    }
    return {};
  }

  double probability_;
  std::vector<double> scale_, ratio_;
  bool noise_;
};

}  // namespace

FLEET_AUGMENTATION(random_erasing) {
  def.order = 50;
  def.schema
      .number("random_erasing.probability", 0, 0, 1,
              "Fill a random rectangle in this fraction of the images; 0: off")
      .numbers("random_erasing.scale", {0.02, 0.33},
               "The rectangle's share of the image's area: minimum and maximum")
      .numbers("random_erasing.ratio", {0.3, 3.3},
               "The rectangle's height / width: minimum and maximum")
      .choice("random_erasing.fill", "mean", {"mean", "noise"},
              "Fill with data.mean (0 after normalisation), or with normally distributed noise");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    const double probability = settings.number("random_erasing.probability");
    if (probability == 0) return nullptr;
    return std::make_unique<RandomErasing>(probability,
                                           range_of(settings, "random_erasing.scale", 1),
                                           range_of(settings, "random_erasing.ratio", 1000),
                                           settings.text("random_erasing.fill") == "noise");
  };
}

}  // namespace fleet::data
