#include "models/predicted_pixels.h"

#include "models/pixel_metrics.h"

namespace fleet {
namespace {

// Pixels in a double, which holds whole numbers of 53 bits.
constexpr size_t kPacked = 6, kBits = 8;

class PixelDecoder : public PredictionDecoder {
 public:
  PixelDecoder(int64_t classes, size_t pixels) : classes_(classes), pixels_(pixels) {}

  std::string output() const override { return "pixel_logits"; }
  size_t size() const override { return (pixels_ + kPacked - 1) / kPacked; }
  size_t used(std::span<const double>) const override { return size(); }
  bool gives_masks() const override { return true; }

  void read(const Rows& rows, int64_t row, std::span<double> to) const override {
    const size_t sample = pixels_ * static_cast<size_t>(classes_);
    std::vector<uint8_t> classes(size() * kPacked);
    classes_of_pixels(
        rows.output("pixel_logits").subspan(static_cast<size_t>(row) * sample, sample), classes_,
        std::span(classes).first(pixels_));
    for (size_t i = 0; i < size(); ++i) {
      uint64_t packed = 0;
      for (size_t p = kPacked; p-- > 0;) packed = packed << kBits | classes[i * kPacked + p];
      to[i] = static_cast<double>(packed);
    }
  }

  // The file of the mask is written by train/prediction_masks.h.
  Json line(const Sample&) const override { return Json::object(); }

 private:
  const int64_t classes_;
  const size_t pixels_;
};

}  // namespace

std::unique_ptr<PredictionDecoder> pixel_decoder(const TaskContext& context) {
  const Shape mask = context.shape("mask");
  return std::make_unique<PixelDecoder>(context.classes(), static_cast<size_t>(mask[1] * mask[2]));
}

std::vector<uint8_t> unpacked_pixels(std::span<const double> numbers, size_t pixels) {
  std::vector<uint8_t> all(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    const auto packed = static_cast<uint64_t>(numbers[i / kPacked]);
    all[i] = static_cast<uint8_t>(packed >> (i % kPacked * kBits));
  }
  return all;
}

}  // namespace fleet
