// Takes the colour from some images, like torchvision's RandomGrayscale.
#include "data/adjust_image.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

class RandomGrayscale : public Augment {
 public:
  explicit RandomGrayscale(double probability) : probability_(probability) {}
  bool colours() const override { return true; }
  void colour(const ImagePlanes& planes, RandomStream& random) const override {
    if (random.uniform() < probability_) make_grey(planes);
  }

 private:
  const double probability_;
};

}  // namespace

FLEET_AUGMENTATION(random_grayscale) {
  def.order = 32;
  def.schema.number("random_grayscale.probability", 0, 0, 1,
                    "Make this fraction of the images grey; 0: off");
  def.make = [](const Settings& settings, const ImageShape&) -> std::unique_ptr<Augment> {
    const double probability = settings.number("random_grayscale.probability");
    return probability > 0 ? std::make_unique<RandomGrayscale>(probability) : nullptr;
  };
}

}  // namespace fleet::data
