// oneDNN convolutions for conv2d, conv2d_transpose and their gradients.
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
Convolution convolution_of(Convolution::Direction direction, const Attributes& attributes,
                           const Shape& x, const Shape& weight, const Shape& y, DType type,
                           DType weight_type);

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

// The primitive with its arguments, for chosen layouts.
std::unique_ptr<PrimitiveKernel> make_convolution(const Convolution& convolution, const Argument& x,
                                                  const Argument& weight, const Argument& bias,
                                                  const Argument& y, void* workspace);

}  // namespace fleet::cpu
