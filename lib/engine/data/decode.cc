#include "data/decode.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "data/decode_format.h"
#include "data/exif.h"

namespace fleet::data {
namespace {

// The pixels of [low, low + size) on one axis that a filter for `count` outputs over [at, at +
// extent) reads. support: the filter's, at scale 1.
void axis(double at, double extent, int count, double support, int low, int size, int* from,
          int* length) {
  const double reach = std::max(1.0, support) * std::max(1.0, extent / count);
  const int first = std::clamp(static_cast<int>(std::floor(at - reach)), low, low + size - 1);
  const int end =
      std::clamp(static_cast<int>(std::ceil(at + extent + reach)), first + 1, low + size);
  *from = first;
  *length = end - first;
}

// The name of an image format that cannot be decoded, by its first bytes; "" if unknown.
std::string format_of(std::string_view text) {
  const auto has = [&](size_t at, std::string_view magic) {
    return text.size() >= at + magic.size() && text.substr(at, magic.size()) == magic;
  };
  using namespace std::string_view_literals;
  if (has(4, "ftypavif")) return "AVIF";
  if (has(4, "ftyphei") || has(4, "ftypmif1")) return "HEIF";
  if (has(4, "jP  ")) return "JPEG 2000";
  if (has(0, "\xff\x0a") || has(4, "JXL ")) return "JPEG XL";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7') return "PNM";
  return "";
}

}  // namespace

Region region_of(const CropGeometry& p) {
  Region region;
  const int left = std::max(p.tap_x, 0), top = std::max(p.tap_y, 0);
  const int right = std::min(p.tap_x + p.tap_width, p.source_width);
  const int bottom = std::min(p.tap_y + p.tap_height, p.source_height);
  FLEET_CHECK(right > left && bottom > top, "a geometry outside its image");
  const double support = filter_support(p.filter);
  axis(p.x, p.width, p.out_width, support, left, right - left, &region.x, &region.width);
  axis(p.y, p.height, p.out_height, support, top, bottom - top, &region.y, &region.height);
  return region;
}

CropGeometry whole_image(int height, int width) {
  return {.source_height = height,
          .source_width = width,
          .out_height = height,
          .out_width = width,
          .width = static_cast<double>(width),
          .height = static_cast<double>(height),
          .tap_width = width,
          .tap_height = height,
          .crop_set = true,
          .scaled = false};
}

Registry<ImageFormatDef>& image_formats() {
  static Registry<ImageFormatDef> registry("image format");
  return registry;
}

struct Decoder::Known {
  std::string name;
  const ImageFormatDef* def;
  std::unique_ptr<Format> made;
};

Decoder::Decoder(bool upright) : upright_(upright) {
  for (const std::string& name : image_formats().names()) {
    formats_.push_back({name, &image_formats().get(name), nullptr});
  }
  std::sort(formats_.begin(), formats_.end(),
            [](const Known& a, const Known& b) { return a.def->order < b.def->order; });
}
Decoder::~Decoder() = default;

bool Decoder::open(std::span<const uint8_t> bytes, int channels) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  current_ = nullptr;
  for (Known& known : formats_) {
    if (!known.def->recognizes(text)) continue;
    if (!known.made) known.made = known.def->make();
    current_ = known.made.get();
    break;
  }
  if (!current_) {
    const std::string format = format_of(text);
    why_ = text.empty()
               ? "the file is empty"
               : "it is not a " + known_names() + (format.empty() ? "" : ", but " + format);
    return false;
  }
  noted_ = exif_orientation(bytes);
  if (current_->open(bytes, channels)) return true;
  why_ = current_->why;
  return false;
}

// "JPEG, PNG, WebP, GIF, BMP or TIFF".
std::string Decoder::known_names() const {
  std::string text;
  for (const Known& known : formats_) {
    const bool last = &known == &formats_.back();
    text += (text.empty() ? "" : last ? " or " : ", ") + known.name;
  }
  return text;
}

bool Decoder::Format::check_size() {
  if (width >= 1 && height >= 1 && width <= kLargestSide && height <= kLargestSide) return true;
  why = "its header claims " + std::to_string(width) + "x" + std::to_string(height) + " pixels";
  return false;
}

uint8_t* Decoder::Format::reserve_rgb(int step) {
  constexpr size_t kBehind = 64;
  return rgb_.reserve(size_t(width) * height * step + kBehind);
}

Pixels Decoder::Format::finish_rgb(int step) {
  uint8_t* memory = reserve_rgb(step);
  const size_t count = size_t(width) * height;
  for (size_t i = 0; grey_ && i < count; ++i) {
    const uint8_t* rgb = memory + i * step;
    memory[i] =
        static_cast<uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
  }
  const int out = grey_ ? 1 : step;
  return {.data = memory,
          .step = out,
          .stride = int64_t{out} * width,
          .width = width,
          .height = height};
}

int Decoder::height() const {
  return upright_ && on_its_side(noted_) ? current_->width : current_->height;
}
int Decoder::width() const {
  return upright_ && on_its_side(noted_) ? current_->height : current_->width;
}
const std::string& Decoder::why() const { return why_; }

bool Decoder::read(const CropGeometry& geometry, Pixels* pixels) {
  const bool turns = upright_ && noted_ != 1;
  const bool good = turns ? current_->read(whole_image(current_->height, current_->width), pixels)
                          : current_->read(geometry, pixels);
  if (good && turns) turn_upright(noted_, &turned_, pixels);
  if (good) return true;
  why_ = current_->why;
  return false;
}

}  // namespace fleet::data
