// Makes the record of one sample for a pack. Internal to data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/decode.h"
#include "data/pack_file.h"
#include "data/pack_images.h"
#include "data/resize.h"
#include "data/source.h"

namespace fleet::data {

// Holds a decoder and scratch memory: use one per thread. The source must outlive it.
class PackedImageMaker {
 public:
  // channels: 1 or 3, of pixels and of JPEGs that are made.
  PackedImageMaker(const Source& source, const PackOptions& options, int channels)
      : source_(source), options_(options), channels_(channels), decoder_(options.upright) {}
  // The record, valid until the next call. Of a sample that cannot be read or decoded, the kind is
  // kDamaged and the bytes are the reason.
  PackWriter::Record make(int64_t index);

 private:
  Pixels pixels_of(const Sample& sample);
  void resize_pixels(const Pixels& pixels);

  const Source& source_;
  const PackOptions options_;
  const int channels_;
  Decoder decoder_;
  Resizer resizer_;
  std::string why_, bytes_, name_;
  std::vector<uint8_t> scratch_, pixels_;
  std::vector<float> planes_;
  int height_ = 0, width_ = 0;
};

}  // namespace fleet::data
