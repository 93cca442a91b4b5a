// Loops over the channels of an image, in any layout that convolutions use.
#pragma once

#include "exec/kernel.h"

namespace fleet::cpu {

// x[n, c, s] is at n * image + c / block * group + s * step + c % block, where s counts pixels.
class Channels {
 public:
  // Plain, channels last, or blocked channels; kInternal otherwise.
  explicit Channels(const Argument& x);
  // bias, sums: plain, with a type of kLoopTypes.
  void add(const Argument& bias) const;  // x[n, c, s] += bias[c]; padding stays zero
  void sum(const Argument& sums) const;  // sums[c] = sum over n, s, in double

 private:
  template <typename T, typename Bias>
  void add_as(T* data, const Bias* bias) const;
  template <typename T, typename Sum>
  void sum_as(const T* data, Sum* sums) const;

  void* data_;
  DType type_;
  int64_t images_, channels_, pixels_, image_, group_, step_, block_;
};

}  // namespace fleet::cpu
