// A summary of a data set, which ranks compare before they train.
#pragma once

#include <cstdint>

#include "data/source.h"

namespace fleet::data {

struct Fingerprint {
  int64_t samples = 0;
  int64_t classes = 0;     // the largest label + 1
  uint64_t labels = 0;     // hash of the labels in order
  uint64_t files = 0;      // hash of the paths below the files' common folder; 0: no files
  uint64_t images = 0;     // hash of the bytes of some samples
  uint64_t tokenizer = 0;  // TokenizerIdentity::hash
  bool operator==(const Fingerprint&) const = default;
};

// Reads a few images, or some hundred rows of tokens. Of more than 2 million labels and paths it
// hashes 2 million, spread evenly. An unreadable sample is hashed as such: training reports the
// reason when it reads that sample.
Fingerprint fingerprint(const Source& source);

}  // namespace fleet::data
