#include "data/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "data/decode_format.h"

namespace fleet::data {
namespace {

// The pixels of [low, low + size) of one axis that a filter for `count` outputs over [at, at +
// extent) reads.
void axis(double at, double extent, int count, int low, int size, int* from, int* length) {
  const double reach = std::max(1.0, extent / count);
  const int first = std::clamp(static_cast<int>(std::floor(at - reach)), low, low + size - 1);
  const int end =
      std::clamp(static_cast<int>(std::ceil(at + extent + reach)), first + 1, low + size);
  *from = first;
  *length = end - first;
}

// The name of another image format by the bytes that it begins with; "" where it is none known.
std::string format_of(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto has = [&](size_t at, std::string_view magic) {
    return text.size() >= at + magic.size() && text.substr(at, magic.size()) == magic;
  };
  using namespace std::string_view_literals;
  if (has(0, "RIFF") && has(8, "WEBP")) return "WebP";
  if (has(0, "GIF8")) return "GIF";
  if (has(0, "BM")) return "BMP";
  if (has(0, "II*\0"sv) || has(0, "MM\0*"sv)) return "TIFF";
  if (has(4, "ftypavif")) return "AVIF";
  if (has(4, "ftyphei") || has(4, "ftypmif1")) return "HEIF";
  if (has(4, "jP  ")) return "JPEG 2000";
  if (has(0, "\xff\x0a") || has(4, "JXL ")) return "JPEG XL";
  if (text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '7') return "PNM";
  return "";
}

}  // namespace

Region region_of(const Placement& p) {
  Region region;
  const int left = std::max(p.tap_x, 0), top = std::max(p.tap_y, 0);
  const int right = std::min(p.tap_x + p.tap_width, p.source_width);
  const int bottom = std::min(p.tap_y + p.tap_height, p.source_height);
  FLEET_CHECK(right > left && bottom > top, "a placement outside its image");
  axis(p.x, p.width, p.out_width, left, right - left, &region.x, &region.width);
  axis(p.y, p.height, p.out_height, top, bottom - top, &region.y, &region.height);
  return region;
}

Decoder::Decoder() = default;
Decoder::~Decoder() = default;

bool Decoder::open(std::span<const uint8_t> bytes, int channels) {
  static constexpr uint8_t kJpeg[] = {0xff, 0xd8}, kPng[] = {0x89, 'P', 'N', 'G'};
  const auto starts_with = [&](std::span<const uint8_t> magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  current_ = nullptr;
  if (starts_with(kJpeg)) {
    if (!jpeg_) jpeg_ = make_jpeg_format();
    current_ = jpeg_.get();
  } else if (starts_with(kPng)) {
    if (!png_) png_ = make_png_format();
    current_ = png_.get();
  } else {
    const std::string format = format_of(bytes);
    why_ = bytes.empty() ? "the file is empty"
                         : "neither JPEG nor PNG" + (format.empty() ? "" : ", but " + format);
    return false;
  }
  if (current_->open(bytes, channels)) return true;
  why_ = current_->why;
  return false;
}

int Decoder::height() const { return current_->height; }
int Decoder::width() const { return current_->width; }
const std::string& Decoder::why() const { return why_; }

bool Decoder::read(const Placement& placement, Pixels* pixels) {
  if (current_->read(placement, pixels)) return true;
  why_ = current_->why;
  return false;
}

}  // namespace fleet::data
