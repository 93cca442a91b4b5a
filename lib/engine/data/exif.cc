#include "data/exif.h"

#include <algorithm>
#include <string_view>

namespace fleet::data {
namespace {

using Bytes = std::span<const uint8_t>;

// 0 beyond the end.
uint32_t number_at(Bytes bytes, size_t at, size_t size, bool little_endian) {
  if (at > bytes.size() || size > bytes.size() - at) return 0;
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value = value << 8 | bytes[at + (little_endian ? size - 1 - i : i)];
  }
  return value;
}

bool starts_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin());
}

// tiff: the block behind the name "Exif". Its first directory has the orientation.
int orientation_of(Bytes tiff) {
  constexpr uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  constexpr size_t kEntry = 12;
  const bool little_endian = starts_with(tiff, "II");
  if (!little_endian && !starts_with(tiff, "MM")) return 1;
  const size_t directory = number_at(tiff, 4, 4, little_endian);
  const size_t entries = number_at(tiff, directory, 2, little_endian);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntry;
    if (entry >= tiff.size()) break;
    if (number_at(tiff, entry, 2, little_endian) != kOrientation) continue;
    const uint32_t type = number_at(tiff, entry + 2, 2, little_endian);
    if (type != kShort && type != kLong) return 1;
    const uint32_t value = number_at(tiff, entry + 8, type == kShort ? 2 : 4, little_endian);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace

int exif_orientation(Bytes file) {
  constexpr uint32_t kStart = 0xffd8, kExif = 0xffe1, kFirstNote = 0xffe0, kLastNote = 0xffef,
                     kComment = 0xfffe;
  constexpr std::string_view kName("Exif\0\0", 6);
  if (number_at(file, 0, 2, false) != kStart) return 1;
  for (size_t at = 2; at < file.size();) {
    const uint32_t marker = number_at(file, at, 2, false);
    const size_t length = number_at(file, at + 2, 2, false);  // with its own two bytes
    const bool note = (marker >= kFirstNote && marker <= kLastNote) || marker == kComment;
    if (!note || length < 2) return 1;  // notes come first
    const Bytes content = file.subspan(std::min(at + 4, file.size()));
    const Bytes segment = content.first(std::min(length - 2, content.size()));
    if (marker == kExif && starts_with(segment, kName)) {
      return orientation_of(segment.subspan(kName.size()));
    }
    at += 2 + length;
  }
  return 1;
}

void turn_upright(int orientation, std::vector<uint8_t>* memory, Pixels* pixels) {
  constexpr size_t kBehind = 64;
  const Pixels from = *pixels;
  const bool swaps = on_its_side(orientation);
  // Where the upright image's first column and row lie: at the end of a stored one?
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int64_t right = from_right ? -from.step : from.step;
  const int64_t down = from_bottom ? -from.stride : from.stride;
  const uint8_t* corner = from.data + (from_right ? int64_t{from.width - 1} * from.step : 0) +
                          (from_bottom ? (from.height - 1) * from.stride : 0);
  pixels->width = swaps ? from.height : from.width;
  pixels->height = swaps ? from.width : from.height;
  pixels->stride = int64_t{pixels->width} * from.step;
  memory->resize(static_cast<size_t>(pixels->stride * pixels->height) + kBehind);
  pixels->data = memory->data();
  const int64_t next = swaps ? down : right, next_row = swaps ? right : down;
  uint8_t* to = memory->data();
  for (int y = 0; y < pixels->height; ++y, corner += next_row) {
    const uint8_t* pixel = corner;
    for (int x = 0; x < pixels->width; ++x, pixel += next, to += from.step) {
      for (int c = 0; c < from.step; ++c) to[c] = pixel[c];
    }
  }
}

}  // namespace fleet::data
