#include "backend/cuda/layouts.h"

namespace fleet::cuda {

Shape stored(const Shape& shape, int64_t block) {
  Shape padded = shape;
  padded[1] = (shape[1] + block - 1) / block * block;
  return padded;
}

Layout channels_last(const Shape& shape, int64_t block) {
  const Shape padded = stored(shape, block);
  if (padded == shape && shape[2] * shape[3] == 1) return Layout::plain(shape);
  if (padded == shape) return Layout::channels_last(shape);
  const int64_t c = padded[1], h = padded[2], w = padded[3];
  return Layout::blocked(padded, {h * w * c, block, w * c, c}, {{1, block}});
}

int64_t channel_block(int64_t channels, int64_t groups, DType dtype) {
  const int64_t block = 16 / static_cast<int64_t>(size_of(dtype));
  return groups == 1 && channels < block ? block : 1;
}

std::vector<DType> kernel_types() { return {DType::kFloat32, DType::kFloat16, DType::kBFloat16}; }

}  // namespace fleet::cuda
