// Graphs of a convolution and surrounding operations that cuDNN has engines for: a batch
// normalization's statistics from the convolution before it, its transformation and relu on the
// input of the convolution after it, and the corresponding gradients. Available on some GPUs for
// some types and shapes: see candidate_plans().
#pragma once

#include <vector>

#include "backend/cuda/dnn_convolution.h"

namespace fleet::cuda::dnn {

struct Tensor;

// The operations that run together with a convolution.
struct Pattern {
  Convolution convolution;  // without bias
  // Forward and weight gradient: the image is max(scale x + bias, 0), with one value per channel
  // each.
  bool transforms_x = false;
  // Forward: sums and sums of squares of y, one value per channel, in float32.
  bool sums_y = false;
  // Data gradient: if the image was max(batch normalization of x, 0), computes the gradient before
  // that relu and the normalization's parameter gradients.
  bool normalises_x = false;
  std::string text() const;
};

// Ids of a pattern's tensors besides the convolution's. Scale and bias of transforms_x have the
// convolution's type; all others are float32.
enum PatternTensor : int64_t {
  kPatternScale = 10,
  kPatternBias,
  kPatternSum,
  kPatternSquares,
  // normalises_x: kConvX is the gradient output, kPatternImage the normalization's input.
  kPatternImage,
  kPatternMean,
  kPatternInverse,  // 1 / sqrt(variance + epsilon)
  kPatternDScale,
  kPatternDBias,
  // The gradient of the normalization's input is scale_dy dy + scale_x x + constant.
  kPatternScaleDy,
  kPatternScaleX,
  kPatternConstant,
};
Graph make_graph(const Pattern& pattern);
// Its tensors that are bound to memory.
std::vector<Tensor> tensors_of(const Pattern& pattern);

}  // namespace fleet::cuda::dnn
