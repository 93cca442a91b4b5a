// cuDNN convolutions for conv2d, conv2d_transpose and their gradients, alone or with surrounding
// operations.
#pragma once

#include <string>
#include <vector>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda::dnn {

class Descriptor;
class Graph;
struct Tensor;

// y = x * weight; each of the three is computed from the other two. Shapes are those in memory,
// with padded channels: x[N, C, H, W], weight[K, C / groups, R, S], y[N, K, P, Q].
struct Convolution {
  enum Direction { kForward, kData, kWeight } direction = kForward;
  Window window{};
  Shape x, weight, y;
  DType dtype = DType::kFloat32;
  bool bias = false;  // forward: bias[K], of the same type, is added
  // All of this in one line.
  std::string text() const;
};

// Ids of a convolution's tensors.
inline constexpr int64_t kConvX = 1, kConvWeight = 2, kConvY = 3, kConvBias = 4;
Graph make_graph(const Convolution& convolution);
// Its strides, paddings and dilations, for larger graphs.
Descriptor make_geometry(const Convolution& convolution);

// A convolution and surrounding operations that cuDNN has engines for: a batch normalization's
// statistics from the convolution before it, its transformation and relu on the input of the
// convolution after it, and the corresponding gradients. Available on some GPUs for some types and
// shapes: see candidate_plans().
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
