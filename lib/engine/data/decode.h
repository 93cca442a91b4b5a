// Decodes JPEG, PNG, WebP, GIF, BMP and TIFF to pixels, limited to the needed part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/augment.h"

namespace fleet::data {

// A rectangle of an image, possibly at reduced scale. 64 more bytes behind the last row are
// readable.
struct Pixels {
  const uint8_t* data = nullptr;  // the rectangle's first pixel
  int step = 0;                   // bytes per pixel: 1 grey, 3 RGB, 4 RGB and one unused
  int64_t stride = 0;             // bytes per row
  int x = 0, y = 0;               // position of the rectangle in the (reduced) image
  int width = 0, height = 0;      // size of the rectangle
  int reduced = 1;  // one pixel stands for reduced x reduced source pixels: 1, 2, 4 or 8
};

// Source pixels [x, x+width) x [y, y+height) that a geometry reads, within the image.
struct Region {
  int x = 0, y = 0, width = 0, height = 0;
};
Region region_of(const CropGeometry& geometry);
// All pixels of an image, decoded at full size.
CropGeometry whole_image(int height, int width);

// Reusable; use one per thread. A damaged image is reported by value (false, and why()), not by an
// exception.
//
// A JPEG is entropy-decoded down to the region's last row; only blocks that the region touches are
// transformed, by an inverse DCT of half, quarter or eighth size if the geometry allows it and the
// region stays at least as large as the output. Grey, YCbCr, RGB, CMYK and YCCK are converted to
// the requested channels; 16-bit samples lose their low byte; transparency is ignored, as in Pillow
// and torchvision, and so is the EXIF orientation of a JPEG unless data.exif is apply. A JPEG
// that ends early, or has broken entropy code, within the rows that are read counts as damaged. The
// other formats are decoded as a whole; of animations and TIFFs, only the first frame or page.
// TIFFs are turned upright by their own note, as in Pillow.
class Decoder {
 public:
  // upright: turns and mirrors a JPEG as its camera has noted (EXIF). Such an image is decoded as a
  // whole and at full size.
  explicit Decoder(bool upright = false);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  // Reads the header. `bytes` must stay valid until the last read(). channels: 1 or 3, the output
  // format.
  bool open(std::span<const uint8_t> bytes, int channels);
  int height() const;
  int width() const;
  // Call once after each open(): the region that the geometry reads, valid until the next open().
  bool read(const CropGeometry& geometry, Pixels* pixels);
  const std::string& why() const;
  // Of the opened image, 1 to 8 (exif.h), even if it is ignored.
  int orientation() const { return noted_; }

  class Format;  // one file format; each has its own adapter file

 private:
  struct Known;  // a registered format, and its adapter once it was needed
  std::string known_names() const;

  const bool upright_;
  std::vector<Known> formats_;
  Format* current_ = nullptr;
  int noted_ = 1;                // the orientation
  std::vector<uint8_t> turned_;  // pixels of an image that had to be turned
  std::string why_;
};

}  // namespace fleet::data
