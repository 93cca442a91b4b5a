// Convolutions of oneDNN, as conv2d, conv2d_transpose and their gradients use them.
#pragma once

#include "backend/cpu/dnnl_glue.h"
#include "ops/window.h"

namespace fleet::cpu {

// y = x * weight, whichever of the three is computed from the other two. weight is
// [O, I / groups, KH, KW], also where oneDNN has a further axis for the groups.
struct Convolution {
  enum Direction { kForward, kData, kWeight } direction;
  Window window;
  int64_t groups;
  Shape x, weight, y;
  DType type, weight_type;         // type: of x and y
  std::optional<DType> bias = {};  // forward: added; weight: its gradient is computed too
  size_t winograd_memory = 0;      // bytes that Winograd's method may take; 0: it is not wanted
};
Convolution convolution_of(Convolution::Direction direction, const Attributes& attributes,
                           const Shape& x, const Shape& weight, const Shape& y, DType type,
                           DType weight_type);

struct ConvolutionLayouts {
  std::optional<Layout> x, weight, y;  // nothing: oneDNN chooses
};

struct ConvolutionChoice {
  Layout x, weight, y;
  size_t workspace;
  bool slow = false;  // none of the candidates has a fast implementation
};

// The layouts of the first candidate that has a fast implementation; where none has one (groups of
// few channels), those oneDNN likes best.
ConvolutionChoice choose(const Convolution& convolution,
                         const std::vector<ConvolutionLayouts>& candidates);

// Scratch memory of the primitive for three layouts that were chosen before.
size_t convolution_workspace(const Convolution& convolution, const ConvolutionLayouts& layouts);

// The primitive, with its arguments, for layouts that were chosen before.
std::unique_ptr<PrimitiveKernel> make_convolution(const Convolution& convolution, const Argument& x,
                                                  const Argument& weight, const Argument& bias,
                                                  const Argument& y, void* workspace);

}  // namespace fleet::cpu
