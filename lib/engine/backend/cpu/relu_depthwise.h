// Depthwise convolutions with a relu on their input (conv2d's input_activation). oneDNN has no such
// primitive, so the batch is processed in slices of a few images. The relu output of a slice is
// kept in scratch memory small enough for the cache, until the next slice overwrites it.
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// The slices of a convolution whose images lie in these layouts.
class ReluDepthwise {
 public:
  ReluDepthwise(const Convolution& convolution, const Layout& x, const Layout& weight,
                const Layout& y);

  // Bytes of scratch memory for each direction's kernel.
  size_t workspace() const;

  std::unique_ptr<Kernel> make_forward(const Argument& x, const Argument& weight,
                                       const Argument& bias, const Argument& y,
                                       void* workspace) const;
  // x: the input of relu; dx is masked by it.
  std::unique_ptr<Kernel> make_data(const Argument& weight, const Argument& dy, const Argument& x,
                                    const Argument& dx, void* workspace) const;
  // Sums over the slices in float32, in order. dbias may be missing.
  std::unique_ptr<Kernel> make_weight(const Argument& x, const Argument& dy,
                                      const Argument& dweight, const Argument& dbias,
                                      void* workspace) const;

 private:
  size_t scratchpad_bytes() const;
  size_t image_bytes() const;  // of a slice of x
  int64_t weights() const { return weight_layout_.elements(); }
  int64_t biases() const { return slice_.bias ? slice_.y[1] : 0; }
  Argument slice_of(const Argument& whole, const Shape& shape, const Layout& layout,
                    int64_t number) const;

  Convolution slice_;  // of one slice
  Layout x_layout_, weight_layout_, y_layout_;
  int64_t count_;  // of slices
};

}  // namespace fleet::cpu
