// Copies of equally spaced runs of memory, for operations that join or cut tensors along an axis.
#pragma once

#include <optional>

#include "backend/cpu/elementwise.h"
#include "exec/kernel.h"

namespace fleet::cpu {

// A tensor as rows, which are contiguous: one for each index of the axes that lie outside of `axis`
// in memory. Indices of `axis` are in blocks (nChw16c: 16 channels), each of `step` elements.
struct Rows {
  int64_t count, row, step, block;
  Rows(const Layout& layout, int axis);
  // Elements from the row's start to that of index `i`, a multiple of `block`.
  int64_t offset(int64_t i) const { return i / block * step; }
};

// `layout`, the current one of a tensor of this shape, if the tensor can be joined and cut in it at
// every multiple of Rows::block; nullopt if it is free, opaque, or padded along `axis`.
std::optional<Layout> row_pattern(const std::optional<Layout>& layout, const Shape& shape,
                                  int axis);

// For each of `count` rows, copies `bytes` bytes from source to target, which advance by their
// strides.
inline void copy_rows(int64_t count, int64_t bytes, const char* from, int64_t from_stride, char* to,
                      int64_t to_stride) {
  if (count == 1) return parallel_copy(to, from, bytes);
#pragma omp parallel for if (count * bytes >= kParallelElements * 4)
  for (int64_t r = 0; r < count; ++r) {
    std::memcpy(to + r * to_stride, from + r * from_stride, bytes);
  }
}

}  // namespace fleet::cpu
