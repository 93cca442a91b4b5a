// One sample of a source made into one image of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/decode.h"
#include "data/read_watch.h"
#include "data/resize.h"
#include "data/source.h"

namespace fleet::data {

// Keeps decoder and scratch memory: one a thread. Source and chain must outlive it.
class SampleMaker {
 public:
  SampleMaker(const Source& source, const AugmentChain& chain);
  // Sample `index`, augmented by the draws of `key`, as normalised floats into out (chain.image()).
  // False, and the reason in *why, where it cannot be read, is damaged, or has a size that does not
  // fit. kUsage where that is so for all of a source's (raw pixels of another size or other
  // channels). GivenUp.
  bool make(int64_t index, uint64_t key, float* out, std::string* why);
  // The same as bytes, height x width x bytes_a_pixel() (pipeline.h), rounded; mirroring is left to
  // whoever normalises: *flip says whether to.
  bool make_bytes(int64_t index, uint64_t key, uint8_t* out, bool* flip, std::string* why);
  ReadWatch& watch() { return watch_; }

 private:
  struct Target;  // what make() and make_bytes() ask for
  bool read(int64_t index, Sample* sample, std::string* why);
  bool make_planes(int64_t index, uint64_t key, const Target& target, std::string* why);
  Pixels pixels_of(const Sample& sample, int64_t index);

  const Source& source_;
  const AugmentChain& chain_;
  bool colours_;
  std::vector<float> unit_scale_, byte_scale_,
      zero_bias_;  // to [0, 1] for what changes colours; as it is
  ReadWatch watch_;
  Decoder decoder_;
  Resizer resizer_;
  std::vector<uint8_t> scratch_, spread_;
  std::vector<float> planes_;  // of an image that becomes bytes
};

// height, width and channels of a source's first sample that can be read; an encoded one counts as
// RGB. kUsage where none of the first ones can.
ImageShape first_shape(const Source& source);

}  // namespace fleet::data
