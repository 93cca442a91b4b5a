// Convolutions of cuDNN, as conv2d, conv2d_transpose and their gradients use them.
#pragma once

#include <string>

#include "ops/window.h"
#include "tensor/dtype.h"

namespace fleet::cuda::dnn {

class Descriptor;
class Graph;

// y = x * weight, whichever of the three is computed from the other two. Shapes are those in
// memory, with padded channels: x[N, C, H, W], weight[K, C / groups, R, S], y[N, K, P, Q].
struct Convolution {
  enum Direction { kForward, kData, kWeight } direction = kForward;
  Window window{};
  Shape x, weight, y;
  DType dtype = DType::kFloat32;
  bool bias = false;  // forward: bias[K], of the same type, is added
  // One line that says all of this.
  std::string text() const;
};

// Ids of a convolution's tensors.
inline constexpr int64_t kConvX = 1, kConvWeight = 2, kConvY = 3, kConvBias = 4;
Graph make_graph(const Convolution& convolution);
// Its strides, paddings and dilations, for graphs of more.
Descriptor make_geometry(const Convolution& convolution);

}  // namespace fleet::cuda::dnn
