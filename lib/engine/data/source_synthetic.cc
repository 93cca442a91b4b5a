// Generated images for benchmarks and tests: each class has its own smooth pattern with noise over
// it, so a model can learn them. A pool of images is generated at the start and repeated, so that
// reading costs nothing.
#include <algorithm>
#include <cmath>

#include "data/random.h"
#include "data/source.h"

namespace fleet::data {
namespace {

constexpr size_t kPoolBytes = size_t{64} << 20;

class Synthetic : public Source {
 public:
  Synthetic(int64_t samples, int64_t classes, const SourceContext& context)
      : samples_(samples),
        channels_(context.channels),
        height_(context.height),
        width_(context.width) {
    const size_t image = size_t(channels_) * height_ * width_;
    const auto images =
        std::min<int64_t>(samples, std::max<int64_t>(std::min<int64_t>(classes, samples),
                                                     static_cast<int64_t>(kPoolBytes / image)));
    pool_.resize(static_cast<size_t>(images) * image);
    for (int64_t i = 0; i < images; ++i) {
      labels_.push_back(i % classes);
      paint(pool_.data() + i * image, labels_.back(), sample_key(context.seed, context.train, i));
    }
  }
  int64_t size() const override { return samples_; }
  int64_t label(int64_t index) const override { return labels_[slot(index)]; }
  Sample read(int64_t index, std::vector<uint8_t>&) const override {
    const size_t image = size_t(channels_) * height_ * width_;
    return {.bytes = {pool_.data() + slot(index) * image, image},
            .encoded = false,
            .height = height_,
            .width = width_,
            .channels = channels_};
  }
  std::string name(int64_t index) const override {
    return "synthetic[" + std::to_string(index) + "]";
  }

 private:
  size_t slot(int64_t index) const { return static_cast<size_t>(index) % labels_.size(); }

  // Paints waves whose direction and colour depend on the class, and noise that depends on the key.
  void paint(uint8_t* to, int64_t label, uint64_t key) const {
    RandomStream pattern(static_cast<uint64_t>(label), "synthetic");
    const double across = pattern.uniform(0.5, 4), down = pattern.uniform(0.5, 4);
    std::vector<double> phase(channels_);
    for (double& value : phase) value = pattern.uniform(0, 6.28);
    uint64_t noise = key;
    for (int y = 0; y < height_; ++y) {
      for (int x = 0; x < width_; ++x) {
        const double at = 6.28 * (across * x / width_ + down * y / height_);
        for (int c = 0; c < channels_; ++c) {
          noise = noise * 6364136223846793005u + 1442695040888963407u;
          const double value = 128 + 60 * std::sin(at + phase[c]) + double(noise >> 58) - 32;
          *to++ = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
        }
      }
    }
  }

  int64_t samples_;
  int channels_, height_, width_;
  std::vector<uint8_t> pool_;
  std::vector<int64_t> labels_;
};

int64_t classes_of(const Settings& split, const SourceContext& context) {
  const int64_t classes = split.integer("classes");
  if (classes > 0) return classes;
  return context.classes > 0 ? context.classes : 10;
}

void describe_synthetic(const Settings& split, SourceContext* context) {
  check_label(classes_of(split, *context) - 1, *context,
              context->train ? "data.train.classes" : "data.test.classes");
  if (context->channels == 0) context->channels = 3;
  if (context->height == 0) context->height = 224;
  if (context->width == 0) context->width = 224;
}

std::unique_ptr<Source> open_synthetic(const Settings& split, const SourceContext& given) {
  SourceContext context = given;
  describe_synthetic(split, &context);
  return std::make_unique<Synthetic>(split.integer("samples"), classes_of(split, context), context);
}

}  // namespace
FLEET_SOURCE(synthetic) {
  def.schema = [](bool train) {
    return Schema()
        .integer("samples", train ? 1024 : 256, 1, 1e12,
                 "Number of generated images, of data.image's size")
        .integer("classes", 0, 0, 1e9, "Number of classes; 0: that of the model, else 10");
  };
  def.describe = describe_synthetic;
  def.open = open_synthetic;
}

}  // namespace fleet::data
