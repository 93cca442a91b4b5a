// Convolutions for conv2d, conv2d_transpose and their gradients: by oneDNN, and by our own loops
// where it has none or slow ones.
#pragma once

#include "backend/cpu/dnnl_glue.h"
#include "ops/window.h"

namespace fleet::cpu {

// y = x * weight; each of the three is computed from the other two. weight is [O, I / groups, KH,
// KW], even where oneDNN has an additional axis for the groups.
struct Convolution {
  enum Direction { kForward, kData, kWeight } direction;
  Window window;
  int64_t groups;
  Shape x, weight, y;
  DType type, weight_type;         // type: of x and y
  std::optional<DType> bias = {};  // forward: added; weight: its gradient is computed too
  size_t winograd_memory = 0;      // bytes that Winograd's method may use; 0: not used
};
// Of variables or of arguments.
template <typename Tensor>
Convolution convolution_of(Convolution::Direction direction, const Attributes& attributes,
                           const Tensor& x, const Tensor& weight, const Tensor& y) {
  return {.direction = direction,
          .window = window_of(attributes, weight.shape[2], weight.shape[3]),
          .groups = attributes.integer("groups"),
          .x = x.shape,
          .weight = weight.shape,
          .y = y.shape,
          .type = y.dtype,
          .weight_type = weight.dtype};
}

struct ConvolutionLayouts {
  std::optional<Layout> x, weight, y;  // empty: oneDNN chooses
};

struct ConvolutionChoice {
  Layout x, weight, y;
  size_t workspace;
  bool slow = false;  // none of the candidates has a fast implementation
};

// The layouts of the first candidate with a fast implementation. If none has one (groups of few
// channels), those that oneDNN prefers.
ConvolutionChoice choose(const Convolution& convolution,
                         const std::vector<ConvolutionLayouts>& candidates);

// Scratch memory of the primitive for three chosen layouts.
size_t convolution_workspace(const Convolution& convolution, const ConvolutionLayouts& layouts);

// The convolution with its arguments, for chosen layouts: a primitive, or our own loops.
std::unique_ptr<Kernel> make_convolution(const Convolution& convolution, const Argument& x,
                                         const Argument& weight, const Argument& bias,
                                         const Argument& y, void* workspace);

// The weight gradient of depthwise convolutions for which oneDNN has no fast implementation (2.6
// has none from 5 x 5 on): it would multiply matrices, one channel at a time. x and dy are in
// blocks of channels, or have their channels last. Sums are float32, with the same bits for any
// number of threads.
class DepthwiseWeight {
 public:
  // Whether this convolution is supported: a square kernel of 3, 5 or 7, no dilation, and no fast
  // implementation in oneDNN.
  static bool is_for(const Convolution& convolution);

  // The required layouts of x, dy and dweight.
  static Layout image_layout(const Shape& image, DType type);
  static Layout weight_layout(const Shape& weight);

  // All arguments in these layouts. dbias may be missing.
  static std::unique_ptr<Kernel> make(const Convolution& convolution, const Argument& x,
                                      const Argument& dy, const Argument& dweight,
                                      const Argument& dbias);
};

// Depthwise convolutions with a relu on their input (conv2d's input_activation). oneDNN has no such
// primitive, so the batch is processed in slices of a few images. The relu output of a slice is
// kept in scratch memory small enough for the cache, until the next slice overwrites it.
//
// The slices of a convolution whose images have these layouts.
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
  size_t image_bytes() const;  // bytes of a slice of x
  int64_t weights() const { return weight_layout_.elements(); }
  int64_t biases() const { return slice_.bias ? slice_.y[1] : 0; }
  Argument slice_of(const Argument& whole, const Shape& shape, const Layout& layout,
                    int64_t number) const;

  Convolution slice_;  // processes one slice
  Layout x_layout_, weight_layout_, y_layout_;
  int64_t count_;  // number of slices
};

}  // namespace fleet::cpu
