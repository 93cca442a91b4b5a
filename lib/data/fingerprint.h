// What ranks compare of their data before they train on it.
#pragma once

#include <cstdint>

#include "data/source.h"

namespace fleet::data {

struct Fingerprint {
  int64_t samples = 0;
  int64_t classes = 0;  // the largest label + 1
  uint64_t labels = 0;  // hash of the labels in their order
  uint64_t files = 0;   // hash of the files' paths below the folder they share; 0: no files
  uint64_t images = 0;  // hash of some samples' bytes
  bool operator==(const Fingerprint&) const = default;
};

// Reads a few samples. Of more than 2 million it looks at as many, evenly spaced. A sample that
// cannot be read counts as such: whoever trains on it says why.
Fingerprint fingerprint(const Source& source);

}  // namespace fleet::data
