// Depthwise convolutions whose image passes through relu on the way in (conv2d's input_activation).
// oneDNN has no such primitive: the batch is taken in slices of a few images, and what relu gives
// of one lies in scratch memory, small enough for the cache, until the next one needs the place.
#pragma once

#include "backend/cpu/convolution.h"

namespace fleet::cpu {

// The slices of a convolution whose images lie in these layouts.
class ReluDepthwise {
 public:
  ReluDepthwise(const Convolution& convolution, const Layout& x, const Layout& weight,
                const Layout& y);

  // Scratch memory of each direction's kernel, in bytes.
  size_t workspace() const;

  std::unique_ptr<Kernel> make_forward(const Argument& x, const Argument& weight,
                                       const Argument& bias, const Argument& y,
                                       void* workspace) const;
  // x: what relu was of; dx is masked by it.
  std::unique_ptr<Kernel> make_data(const Argument& weight, const Argument& dy, const Argument& x,
                                    const Argument& dx, void* workspace) const;
  // Summed over the slices in float32, in their order. dbias may be missing.
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
