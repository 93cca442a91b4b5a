// The layouts of batch normalization's tensors on a GPU. Host only.
#pragma once

#include "backend/cuda/norm.h"
#include "tensor/layout.h"
#include "tensor/shape.h"

namespace fleet::cuda {

inline NormShape norm_shape(const Shape& x, DType dtype) {
  return {.dtype = dtype, .rows = x.elements() / x[1], .channels = x[1]};
}

inline Layout rows_of_channels(const Shape& x) {
  return x.rank() == 2 ? Layout::plain(x) : Layout::channels_last(x);
}

inline Layout norm_mask_layout(const NormShape& shape) {
  return Layout::opaque(norm_mask_bytes(shape), "batch_norm_mask");
}

}  // namespace fleet::cuda
