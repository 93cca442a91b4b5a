// Resizes the image, then crops or pads its centre to the output: the evaluation of images. Matches
// torchvision's Resize(n) and CenterCrop, and timm's crop modes, to the pixel.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/augment.h"

namespace fleet::data {
namespace {

struct Sides {
  int height = 0, width = 0;
};

enum class CropMode { kCenter, kSquash, kBorder };

// A line of pixels, enlarged to `resize`, may be longer than an int can say.
int bounded_side(int64_t side) {
  constexpr int64_t kLongest = 1 << 30;
  return static_cast<int>(std::clamp<int64_t>(side, 1, kLongest));
}

class Resize : public Augment {
 public:
  // sides: the resized image's, before the crop; the mode decides which of them counts.
  Resize(Sides sides, CropMode mode) : sides_(sides), mode_(mode) {}
  bool sets_crop() const override { return true; }

  void set_geometry(CropGeometry& p, RandomStream&) const override {
    const Sides resized = resized_sides(p.source_height, p.source_width);
    p.resized_height = resized.height;
    p.resized_width = resized.width;
    p.resized_y = offset(resized.height, p.out_height);
    p.resized_x = offset(resized.width, p.out_width);
    const double y_scale = double(p.source_height) / resized.height;
    const double x_scale = double(p.source_width) / resized.width;
    p.y = double(p.resized_y) * y_scale;
    p.x = double(p.resized_x) * x_scale;
    p.height = p.out_height * y_scale;
    p.width = p.out_width * x_scale;
    p.fill_mean = mode_ == CropMode::kBorder;
    p.crop_set = true;
  }

 private:
  Sides resized_sides(int height, int width) const {
    if (mode_ == CropMode::kSquash) return sides_;
    if (mode_ == CropMode::kCenter && sides_.height == sides_.width) {
      const int64_t side = sides_.height, shorter = std::min(height, width);
      const auto resized = [&](int from) {
        return bounded_side(std::max(side, side * from / shorter));
      };
      return {resized(height), resized(width)};
    }
    // timm's ResizeKeepRatio. lrint rounds halves to even, as Python's round() does.
    const double down = double(height) / sides_.height, across = double(width) / sides_.width;
    const double ratio =
        mode_ == CropMode::kBorder ? std::max(down, across) : std::min(down, across);
    const auto resized = [&](int from) { return bounded_side(std::lrint(from / ratio)); };
    return {resized(height), resized(width)};
  }

  // Where the output begins in the resized image; negative if it is padded. The larger half of an
  // odd number of padded pixels comes last.
  static int offset(int resized, int out) {
    if (resized < out) return -((out - resized) / 2);
    return static_cast<int>(std::lrint(double(resized - out) / 2));
  }

  Sides sides_;
  CropMode mode_;
};

CropMode mode_of(const std::string& name) {
  if (name == "squash") return CropMode::kSquash;
  return name == "border" ? CropMode::kBorder : CropMode::kCenter;
}

[[noreturn]] void refuse_side(int side, const Settings& settings, const ImageShape& image) {
  throw Error(ErrorCode::kUsage,
              "images resized to " + std::to_string(side) + " are smaller than data.image (" +
                  image.text() + ")",
              settings.origin("resize"),
              "set data.image.height and data.image.width to at most " + std::to_string(side) +
                  ", or 'resize' to at least " +
                  std::to_string(std::max(image.height, image.width)));
}

// The sides that `resize` or `crop_pct` name; 0: neither is set.
Sides sides_of(const Settings& settings, const ImageShape& image) {
  const auto side = static_cast<int>(settings.integer("resize"));
  const double part = settings.number("crop_pct");
  if (side != 0 && part != 0) {
    throw Error(ErrorCode::kUsage, "'resize' and 'crop_pct' both say how images are resized",
                settings.origin("crop_pct"), "set one of them");
  }
  if (side == 0 && part == 0) {
    if (settings.text("crop_mode") == "center") return {};
    throw Error(ErrorCode::kUsage, "nothing says to what size images are resized",
                settings.origin("crop_mode"), "set 'crop_pct', too: 1 for the whole image");
  }
  if (side != 0 && (side < image.height || side < image.width)) refuse_side(side, settings, image);
  if (side != 0) return {side, side};
  constexpr double kSmallest = 0.1;
  if (part < kSmallest) {
    throw Error(ErrorCode::kUsage, "a crop of less than a tenth of the image's side",
                settings.origin("crop_pct"), "usual are 0.875 to 1");
  }
  const auto larger = [&](int out) { return static_cast<int>(std::floor(out / part)); };
  return {larger(image.height), larger(image.width)};
}

}  // namespace

FLEET_AUGMENTATION(resize) {
  def.order = 10;
  def.evaluation = true;
  def.schema
      .integer(
          "resize", 0, 0, 65536,
          "Resize the image's shorter side to this number of pixels, then crop data.image's size "
          "from the centre (ImageNet's recipe: 256); 0: off")
      .number("crop_pct", 0, 0, 1,
              "Instead of 'resize', timm's key: the share of the resized image's side that "
              "data.image has; 224 of 256 is 0.875; 0: off")
      .choice("crop_mode", "center", {"center", "squash", "border"},
              "How an image gets data.image's proportions: 'center' cuts the longer side, "
              "'squash' changes the image's proportions, 'border' keeps all of it and fills the "
              "rest with data.mean; as timm's crop_mode");
  def.make = [](const Settings& settings, const ImageShape& image) -> std::unique_ptr<Augment> {
    const Sides sides = sides_of(settings, image);
    if (sides.height == 0) return nullptr;
    return std::make_unique<Resize>(sides, mode_of(settings.text("crop_mode")));
  };
}

}  // namespace fleet::data
