// Copies of equally spaced runs of memory.
#pragma once

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

// A tensor as rows of `row` elements, one for each index of the axes before `axis`.
struct Rows {
  int64_t count = 1, row = 1;
  Rows(const Shape& shape, int64_t axis) {
    for (int d = 0; d < shape.rank(); ++d) (d < axis ? count : row) *= shape[d];
  }
};

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
