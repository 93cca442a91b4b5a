// Windows bitmaps: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, not compressed. Interprets
// the stored values, and expands 5 and 6 bits to 8, like Pillow (src/libImaging/Unpack.c).
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>

#include "data/decode_format.h"

namespace fleet::data {
namespace {

class Bmp : public Decoder::Format {
 public:
  bool open(std::span<const uint8_t> bytes, int channels) override {
    bytes_ = bytes;
    grey_ = channels == 1;
    if (bytes.size() < 26) return fail("the BMP header is cut off");
    const uint32_t header = number(14, 4);
    if (header != 12 && header < 40) return fail("the BMP header is damaged");
    if (bytes.size() < size_t{14} + header) return fail("the BMP header is cut off");
    old_ = header == 12;
    const auto side = [&](size_t at) {
      return old_ ? int64_t{number(at, 2)} : int64_t{static_cast<int32_t>(number(at, 4))};
    };
    const int64_t columns = side(18), rows = side(old_ ? 20 : 22);
    width = static_cast<int>(std::clamp<int64_t>(columns, 0, INT32_MAX));
    height = static_cast<int>(std::min<int64_t>(std::abs(rows), INT32_MAX));
    top_down_ = rows < 0;
    bits_ = static_cast<int>(number(old_ ? 24 : 28, 2));
    const uint32_t compression = old_ ? 0 : number(30, 4);
    if (compression != 0 && compression != 3) return fail("compressed BMPs are not supported");
    static constexpr int kBits[] = {1, 4, 8, 16, 24, 32};
    if (std::find(std::begin(kBits), std::end(kBits), bits_) == std::end(kBits)) {
      return fail("a BMP has 1, 4, 8, 16, 24 or 32 bits per pixel, not " + std::to_string(bits_));
    }
    start_ = number(10, 4);
    return check_size() && read_masks(header, compression) && read_palette(header);
  }

  bool read(const CropGeometry&, Pixels* pixels) override {
    const uint64_t stride = (uint64_t(width) * bits_ + 31) / 32 * 4;
    if (start_ > bytes_.size() ||
        (bytes_.size() - start_) / stride < static_cast<uint64_t>(height)) {
      return fail("the BMP ends early");
    }
    uint8_t* to = reserve_rgb(3);
    for (int y = 0; y < height; ++y) {
      const int row = top_down_ ? y : height - 1 - y;
      const uint8_t* from = bytes_.data() + start_ + stride * row;
      for (int x = 0; x < width; ++x, to += 3) put(from, x, to);
    }
    *pixels = finish_rgb(3);
    return true;
  }

 private:
  bool fail(const std::string& what) {
    why = what;
    return false;
  }

  // A little-endian number; its bytes must exist.
  uint32_t number(size_t at, int count) const {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= uint32_t{bytes_[at + i]} << (8 * i);
    return value;
  }

  // Reads which bits of a pixel are red, green and blue.
  bool read_masks(uint32_t header, uint32_t compression) {
    masks_ = bits_ == 16 ? std::array<uint32_t, 3>{0x7c00, 0x3e0, 0x1f}
                         : std::array<uint32_t, 3>{0xff0000, 0xff00, 0xff};
    if (compression != 3) return true;
    if (bits_ != 16 && bits_ != 32) return fail("the BMP's colours are damaged");
    const size_t at = 54;  // behind a short header, or within a long one
    if (bytes_.size() < at + 12) return fail("the BMP header is cut off");
    for (size_t i = 0; i < 3; ++i) masks_[i] = number(at + 4 * i, 4);
    for (const uint32_t mask : masks_) {
      const uint32_t ones = mask == 0 ? 0 : mask >> std::countr_zero(mask);
      if (mask == 0 || ones > 255 || (ones & (ones + 1)) != 0) {
        return fail("a BMP's colours have 1 to 8 bits each, side by side");
      }
    }
    if (header == 40) start_ = std::max<uint64_t>(start_, at + 12);
    return true;
  }

  bool read_palette(uint32_t header) {
    for (size_t i = 0; i < palette_.size(); ++i) palette_[i] = static_cast<uint8_t>(i / 3);
    if (bits_ > 8) return true;
    const size_t entry = old_ ? 3 : 4;
    const uint32_t used = old_ ? 0 : number(46, 4);
    const size_t colours = std::min<size_t>(used > 0 ? used : size_t{1} << bits_, 256);
    const size_t at = size_t{14} + header;
    if (bytes_.size() < at + colours * entry) return fail("the BMP's palette is cut off");
    for (size_t i = 0; i < colours; ++i) {
      for (size_t c = 0; c < 3; ++c) palette_[3 * i + c] = bytes_[at + i * entry + 2 - c];
    }
    return true;
  }

  void put(const uint8_t* row, int x, uint8_t* to) const {
    if (bits_ <= 8) {
      const int per_byte = 8 / bits_;
      const int shift = 8 - bits_ - x % per_byte * bits_;
      const int index = row[x / per_byte] >> shift & ((1 << bits_) - 1);
      std::copy_n(&palette_[size_t{3} * index], 3, to);
      return;
    }
    const int bytes = bits_ / 8;
    uint32_t pixel = 0;
    for (int i = 0; i < bytes; ++i) pixel |= uint32_t{row[x * bytes + i]} << (8 * i);
    for (size_t c = 0; c < 3; ++c) {
      const int shift = std::countr_zero(masks_[c]);
      const uint32_t most = masks_[c] >> shift;
      to[c] = static_cast<uint8_t>((pixel & masks_[c]) >> shift) * 255u / most;
    }
  }

  std::span<const uint8_t> bytes_;
  bool old_ = false, top_down_ = false;
  int bits_ = 0;
  uint64_t start_ = 0;
  std::array<uint32_t, 3> masks_{};
  std::array<uint8_t, 768> palette_{};
};

}  // namespace

FLEET_IMAGE_FORMAT(BMP) {
  def.order = 50;
  def.recognizes = [](std::string_view bytes) { return bytes.starts_with("BM"); };
  def.make = []() -> std::unique_ptr<Decoder::Format> { return std::make_unique<Bmp>(); };
}

}  // namespace fleet::data
