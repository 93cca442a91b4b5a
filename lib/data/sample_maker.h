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

 private:
  Pixels pixels_of(const Sample& sample, int64_t index);

  const Source& source_;
  const AugmentChain& chain_;
  bool colours_;
  std::vector<float> unit_scale_, zero_bias_;  // to [0, 1], for what changes colours
  Decoder decoder_;
  Resizer resizer_;
  std::vector<uint8_t> scratch_, spread_;
};

// height, width and channels of a sample as it comes from its source; an encoded one counts as RGB.
// kUsage where it is damaged.
ImageShape shape_of(const Source& source, int64_t index);

}  // namespace fleet::data
