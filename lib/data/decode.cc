#include "data/decode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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
    why_ = bytes.empty() ? "the file is empty" : "neither JPEG nor PNG";
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
