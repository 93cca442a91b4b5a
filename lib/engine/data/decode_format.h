// The interface between Decoder and a file format, and the registry of formats. Internal to data:
// decode.cc, decode_jpeg.cc, decode_png.cc...
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "data/decode.h"

namespace fleet::data {

// Memory that is never cleared: pixels overwrite it anyway. It grows, and is replaced after a large
// image, which every thread would otherwise keep.
class PixelMemory {
 public:
  uint8_t* reserve(size_t bytes) {
    constexpr size_t kLarge = 64 << 20;
    if (bytes > size_ || (size_ > kLarge && bytes < size_ / 4)) {
      memory_.reset();
      size_ = (bytes + 4095) / 4096 * 4096;
      memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, size_)));
      if (!memory_) throw std::bad_alloc();
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  std::unique_ptr<uint8_t, Free> memory_;
  size_t size_ = 0;
};

class Decoder::Format {
 public:
  virtual ~Format() = default;
  virtual bool open(std::span<const uint8_t> bytes, int channels) = 0;
  virtual bool read(const CropGeometry& geometry, Pixels* pixels) = 0;
  int height = 0, width = 0;
  std::string why;

 protected:
  // An image header may claim any size; a larger one is an error, not a training image.
  static constexpr int kLargestSide = 1 << 14;
  // For formats that are decoded as a whole: whether width and height are acceptable.
  bool check_size();
  // Memory for the whole image, `step` bytes per pixel, beginning with red, green and blue.
  uint8_t* reserve_rgb(int step);
  // The pixels written to reserve_rgb(); if grey_, converted to grey as Pillow does.
  Pixels finish_rgb(int step);

  bool grey_ = false;

 private:
  PixelMemory rgb_;
};

struct ImageFormatDef {
  int order = 0;  // position among the formats that a message lists
  // Whether a file that begins with these bytes has this format.
  bool (*recognizes)(std::string_view bytes) = nullptr;
  std::unique_ptr<Decoder::Format> (*make)() = nullptr;
};

// By the name that messages use: "JPEG".
Registry<ImageFormatDef>& image_formats();

// FLEET_IMAGE_FORMAT(GIF) { def.recognizes = ...; def.make = ...; } in
// lib/engine/data/decode_gif.cc.
#define FLEET_IMAGE_FORMAT(name)                                          \
  FLEET_REGISTER(image_format_##name, ::fleet::data::ImageFormatDef& def, \
                 ::fleet::data::image_formats().define, #name)

}  // namespace fleet::data
