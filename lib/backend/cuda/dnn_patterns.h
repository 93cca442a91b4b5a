// Graphs of more than a convolution that cuDNN has engines for: a batch normalisation's statistics
// out of the convolution before it, its transformation and relu on the way into the one behind it,
// and the same backwards. On some GPUs, for some types and shapes: ask make_plans().
#pragma once

#include <vector>

#include "backend/cuda/dnn_convolution.h"

namespace fleet::cuda::dnn {

struct Tensor;

// Which of the operations around a convolution run with it.
struct Pattern {
  Convolution convolution;  // without bias
  // Forward and weight gradient: the image is max(scale x + bias, 0), a value a channel each.
  bool transforms_x = false;
  // Forward: sums and sums of squares of y, a value a channel, in float32.
  bool sums_y = false;
  // Data gradient: where the image was max(batch normalisation of x, 0), the gradient before that
  // relu, and that normalisation's parameter gradients.
  bool normalises_x = false;
  std::string text() const;
};

// Ids of a pattern's tensors, besides the convolution's. Scale and bias of transforms_x are of the
// convolution's type, all others float32.
enum PatternTensor : int64_t {
  kPatternScale = 10,
  kPatternBias,
  kPatternSum,
  kPatternSquares,
  // normalises_x: kConvX is the gradient that is written, kPatternImage the normalisation's input.
  kPatternImage,
  kPatternMean,
  kPatternInverse,  // 1 / sqrt(variance + epsilon)
  kPatternDScale,
  kPatternDBias,
  // The gradient of the normalisation's input is scale_dy dy + scale_x x + constant.
  kPatternScaleDy,
  kPatternScaleX,
  kPatternConstant,
};
Graph make_graph(const Pattern& pattern);
// Those of its tensors that are bound to memory.
std::vector<Tensor> tensors_of(const Pattern& pattern);

}  // namespace fleet::cuda::dnn
