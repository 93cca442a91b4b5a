// JPEG, PNG, WebP, GIF and BMP to pixels, decoding only the needed part.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "data/augment.h"

namespace fleet::data {

// A rectangle of an image, perhaps at reduced scale. Memory behind the last row is readable for 64
// bytes more.
struct Pixels {
  const uint8_t* data = nullptr;  // the rectangle's first pixel
  int step = 0;                   // bytes from pixel to pixel: 1 grey, 3 RGB, 4 RGB and one unused
  int64_t stride = 0;             // bytes from row to row
  int x = 0, y = 0;               // where the rectangle lies in the (reduced) image
  int width = 0, height = 0;      // pixels that are there
  int reduced = 1;  // one pixel here stands for reduced x reduced of the source's: 1, 2, 4 or 8
};

// Source pixels [x, x+width) x [y, y+height) that a placement reads, within the image.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
};
Region region_of(const Placement& placement);

// Reusable; one a thread. A damaged image is a value (false, and why()), not an exception.
//
// A JPEG is entropy-decoded down to the region's last row; only blocks that the region touches are
// transformed, by an inverse DCT of half, quarter or eighth size where the placement allows it and
// the region stays at least as large as the output. Grey, YCbCr, RGB, CMYK and YCCK become what is
// asked for; 16-bit PNGs lose their low byte and transparency is ignored, and so is EXIF's
// orientation, as in Pillow and torchvision. A JPEG that ends early, or whose entropy code is
// broken, in the rows that are read counts as damaged. The other formats are decoded whole; of
// animations the first frame.
class Decoder {
 public:
  Decoder();
  ~Decoder();
  Decoder(const Decoder&) = delete;
  // Reads the header. `bytes` must stay until the last read(). channels: 1 or 3, what to decode to.
  bool open(std::span<const uint8_t> bytes, int channels);
  int height() const;
  int width() const;
  // Once after each open(): the region that the placement reads, valid until the next open().
  bool read(const Placement& placement, Pixels* pixels);
  const std::string& why() const;

  class Format;  // one a file format: an adapter file each

 private:
  std::unique_ptr<Format> jpeg_, png_, webp_, gif_, bmp_;
  Format* current_ = nullptr;
  std::string why_;
};

}  // namespace fleet::data
