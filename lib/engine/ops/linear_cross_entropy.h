// The sizes that the definition of linear_cross_entropy and its kernels share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/program.h"

namespace fleet {

// Rows whose logits are in memory at one time, of `rows` rows over `classes` classes. chunk: the
// attribute; 0 chooses 2048 to 4096 rows, enough for products to run at full speed, of at most 2^27
// logits where these suffice. The chunks of `rows` rows are equal except for the last.
inline int64_t cross_entropy_chunk(int64_t rows, int64_t classes, int64_t chunk) {
  constexpr int64_t kFewest = 2048, kMost = 4096, kLogits = int64_t{1} << 27;
  if (rows <= 0) return 1;
  if (chunk <= 0) chunk = std::clamp(kLogits / std::max<int64_t>(classes, 1), kFewest, kMost);
  const int64_t chunks = (rows + chunk - 1) / chunk;
  return (rows + chunks - 1) / chunks;
}

// Elements from one row of logits to the next: whole cache lines of every type.
inline int64_t logits_stride(int64_t classes) { return (classes + 63) / 64 * 64; }

// The sizes of one call with hidden [..., depth] and head [classes, depth].
struct HeadSizes {
  int64_t rows, depth, classes, chunk, stride;  // stride: from one row of logits to the next
  DType type;                                   // the elements of hidden

  HeadSizes(const Attributes& attributes, const Shape& hidden, const Shape& head, DType dtype)
      : rows(hidden.elements() / std::max<int64_t>(head[1], 1)),
        depth(head[1]),
        classes(head[0]),
        chunk(cross_entropy_chunk(rows, classes, attributes.integer("chunk"))),
        stride(logits_stride(classes)),
        type(dtype) {}
};

}  // namespace fleet
