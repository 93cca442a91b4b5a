// One sample of a source made into one image of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"
#include "data/resize.h"
#include "data/source.h"

namespace fleet::data {

// Keeps decoder and scratch memory: one a thread. Source and chain must outlive it.
class SampleMaker {
 public:
  SampleMaker(const Source& source, const AugmentChain& chain);
  // Sample `index`, augmented by the draws of `key`, as normalised floats into out (chain.image()).
  // False, and the reason in *why, where the image is damaged. kUsage where its size or channels do
  // not fit; what Source::read() throws.
  bool make(int64_t index, uint64_t key, float* out, std::string* why);
  // The same as bytes, height x width x bytes_a_pixel() (pipeline.h), rounded; mirroring is left to
  // whoever normalises: *flip says whether to.
  bool make_bytes(int64_t index, uint64_t key, uint8_t* out, bool* flip, std::string* why);

 private:
  struct Target;  // what make() and make_bytes() ask for
  bool make_planes(int64_t index, uint64_t key, const Target& target, std::string* why);
  Pixels pixels_of(const Sample& sample, int64_t index);

  const Source& source_;
  const AugmentChain& chain_;
  bool colours_;
  std::vector<float> unit_scale_, byte_scale_,
      zero_bias_;  // to [0, 1] for what changes colours; as it is
  Decoder decoder_;
  Resizer resizer_;
  std::vector<uint8_t> scratch_, spread_;
  std::vector<float> planes_;  // of an image that becomes bytes
};

// height, width and channels of a sample as it comes from its source; an encoded one counts as RGB.
// kUsage where it is damaged.
ImageShape shape_of(const Source& source, int64_t index);

}  // namespace fleet::data
