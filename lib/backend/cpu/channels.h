// Loops over the channels of an image in any layout convolutions use.
#pragma once

#include "exec/kernel.h"

namespace fleet::cpu {

// x[n, c, s] lies at n * image + c / block * group + s * step + c % block, s over the pixels.
class Channels {
 public:
  // Plain, channels last, or channels in blocks; else kInternal.
  explicit Channels(const Argument& x);
  void add(const float* bias) const;  // x[n, c, s] += bias[c]; padding stays zero
  void sum(float* sums) const;        // sums[c] = sum over n, s, in double

 private:
  float* data_;
  int64_t images_, channels_, pixels_, image_, group_, step_, block_;
};

}  // namespace fleet::cpu
