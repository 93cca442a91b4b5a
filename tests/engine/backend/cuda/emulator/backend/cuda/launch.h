// Stands in front of lib/engine/backend/cuda/launch.h by the order of include folders: the same
// kernels compile as plain C++ and run on the host, block after block, threads as fibers (block.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cuda/device.h"
#include "tests/engine/backend/cuda/emulator/block.h"
#include "tests/engine/backend/cuda/emulator/stream.h"

// Blocks run one at a time, so that what a block shares may be static.
#undef __shared__
#define __shared__ static
#undef __launch_bounds__
#define __launch_bounds__(...)

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace fleet::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kBlock = 256;

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  check(emulator::launchable(grid, block, shared_bytes), "launching a kernel");
  const auto thread = [=] { kernel(static_cast<Parameters>(arguments)...); };
  emulator::issue(stream, [=] {
    emulator::run_grid(grid, block, shared_bytes, thread, [](const emulator::Position& position) {
      ::threadIdx = position.thread;
      ::blockIdx = position.block;
      ::blockDim = position.block_size;
      ::gridDim = position.grid_size;
    });
  });
}

template <typename T>
T* dynamic_shared() {
  return static_cast<T*>(emulator::shared_memory());
}

inline void block_barrier() { emulator::barrier(); }

template <typename T>
T shuffle_from(T value, int lane) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t raw = 0;
  std::memcpy(&raw, &value, sizeof value);
  raw = emulator::exchange(raw)[lane % kWarp];
  std::memcpy(&value, &raw, sizeof value);
  return value;
}
template <typename T>
T shuffle_xor(T value, int distance) {
  return shuffle_from(value, emulator::lane() ^ distance);
}
template <typename T>
T shuffle(T value, int lane) {
  return shuffle_from(value, lane);
}
inline unsigned ballot(bool predicate) {
  const uint64_t* lanes = emulator::exchange(predicate);
  unsigned bits = 0;
  for (int lane = 0; lane < kWarp; ++lane) bits |= static_cast<unsigned>(lanes[lane]) << lane;
  return bits;
}

inline void atomic_add(uint32_t* to, uint32_t value) { *to += value; }
inline void atomic_max(int32_t* to, int32_t value) {
  if (*to < value) *to = value;
}

}  // namespace fleet::cuda
