// Makes one image of a batch from one sample of a source.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"
#include "data/image_cache.h"
#include "data/read_watchdog.h"
#include "data/resize.h"
#include "data/source.h"

namespace fleet::data {

// Holds a decoder and scratch memory: use one per thread. Source and chain must outlive it.
class SampleMaker {
 public:
  // cache: for decoded images, or null. With it, images are always decoded as a whole and in full
  // size, so that a sample is the same whether it was in the cache or not.
  SampleMaker(const Source& source, const AugmentChain& chain,
              std::shared_ptr<ImageCache> cache = nullptr);
  // Writes sample `index`, augmented by the draws of `key`, as normalised floats to out
  // (chain.image()). Returns false, and the reason in *why, if it cannot be read, is damaged, or
  // has an unsuitable size. kUsage if that holds for all samples of a source (raw pixels of another
  // size or with other channels). Throws ReadAbandoned.
  bool make(int64_t index, uint64_t key, float* out, std::string* why);
  // The same as bytes, height x width x bytes_a_pixel() (pipeline.h), rounded. *flip tells the
  // normalising device whether to mirror it: never if the augmentation depends on where pixels lie.
  bool make_bytes(int64_t index, uint64_t key, uint8_t* out, bool* flip, std::string* why);
  ReadWatchdog& watchdog() { return watchdog_; }
  int64_t reading_ns() const { return reading_ns_; }  // total time of reading from the source

 private:
  struct Target;  // the output that make() and make_bytes() request
  bool read(int64_t index, Sample* sample, std::string* why);
  bool make_planes(int64_t index, uint64_t key, const Target& target, std::string* why);
  Pixels pixels_of(const Sample& sample, int64_t index);
  bool decode(int64_t index, const CropGeometry& geometry, Pixels* pixels);

  const Source& source_;
  const AugmentChain& chain_;
  const std::shared_ptr<ImageCache> cache_;
  bool colours_;
  bool mirrors_;  // must mirror bytes itself
  std::vector<float> unit_scale_, byte_scale_,
      zero_bias_;  // scale to [0, 1] for colour changes; scale that changes nothing
  ReadWatchdog watchdog_;
  int64_t reading_ns_ = 0;
  Decoder decoder_;
  Resizer resizer_;
  std::vector<uint8_t> scratch_, spread_;
  std::vector<float> planes_;  // of an image that is converted to bytes
};

// Height, width and channels of the first readable sample of a source; an encoded image counts as
// RGB. kUsage if none of the first ones is readable.
ImageShape first_shape(const Source& source);

}  // namespace fleet::data
