// cuDNN convolutions for conv2d, conv2d_transpose and their gradients.
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

}  // namespace fleet::cuda::dnn
