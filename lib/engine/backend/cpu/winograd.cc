#include <algorithm>

#include "backend/cpu/convolution.h"

namespace fleet::cpu {
namespace {

constexpr int64_t kTile = 4;  // output size of a tile, in each direction

bool has_its_shape(const Convolution& conv) {
  const Window& window = conv.window;
  for (int d = 0; d < 2; ++d) {
    if (conv.weight[2 + d] != 3 || window.strides[d] != 1 || window.dilations[d] != 1) return false;
  }
  return conv.groups == 1 && conv.type == DType::kFloat32 && conv.weight_type == DType::kFloat32;
}

}  // namespace

// Measured with `scripts/bench.sh winograd` (docs/performance/winograd.md). With few channels,
// transforms cost more than they save. With few tiles, so does transforming the weights. If most of
// a tile lies outside the image, so do the multiplications.
bool prefers_winograd(const Convolution& conv) {
  if (conv.winograd_memory == 0 || !has_its_shape(conv)) return false;
  constexpr int64_t kFewestChannels = 32, kFewestTiles = 32;
  if (std::min(conv.weight[0], conv.weight[1]) < kFewestChannels) return false;
  const Shape& out = conv.direction == Convolution::kData ? conv.x : conv.y;
  int64_t tiles = out[0];
  for (int d = 2; d < 4; ++d) tiles *= (out[d] + kTile - 1) / kTile;
  const int64_t outputs = out[0] * out[2] * out[3];
  return tiles >= kFewestTiles && 2 * outputs >= tiles * kTile * kTile;
}

}  // namespace fleet::cpu
