// A stable radix sort of ids with their positions, for gradients that sum rows by id in a fixed
// order. Only integers are counted with atomics: results do not depend on the order of threads.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "exec/kernel.h"

namespace fleet::cuda {

// ids: `count` ids of 32 or 64 bits. Ids outside 0..rows - 1 and `ignored` become `rows` and come
// last.
struct SortedIds {
  const uint32_t *ids, *positions;  // [count]: sorted by id, then by position
};

// Bytes of scratch memory for it.
size_t sort_workspace(int64_t count);
// Enqueued; the result is in the workspace. count, rows: below 2^31.
SortedIds sort_ids(cudaStream_t stream, const Argument& ids, int64_t rows, int64_t ignored,
                   void* workspace);

}  // namespace fleet::cuda
