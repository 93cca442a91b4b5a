// Stands in front of lib/engine/backend/cuda/atomics.h: threads are fibers of one thread.
#pragma once

#include <cstdint>

namespace fleet::cuda {

inline void atomic_add(uint32_t* to, uint32_t value) { *to += value; }
inline void atomic_max(int32_t* to, int32_t value) {
  if (*to < value) *to = value;
}

}  // namespace fleet::cuda
