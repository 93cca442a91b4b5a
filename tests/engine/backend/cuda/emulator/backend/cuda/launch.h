// Stands in front of lib/engine/backend/cuda/launch.h by the order of include folders: the same
// kernels compile as plain C++ and run on the host, block after block, threads as fibers (block.h).
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
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

// The same values at the same lanes as the instructions.
template <typename T>
float tile_element(uint32_t pair, int half) {
  return static_cast<float>(std::bit_cast<T>(static_cast<uint16_t>(pair >> 16 * half)));
}
template <typename T>
void multiply_tiles(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  uint32_t all_a[4][kWarp], all_b[2][kWarp];
  const auto gather = [](uint32_t low, uint32_t high, uint32_t* lows, uint32_t* highs) {
    const uint64_t* lanes = emulator::exchange(low | static_cast<uint64_t>(high) << 32);
    for (int i = 0; i < kWarp; ++i) {
      lows[i] = static_cast<uint32_t>(lanes[i]);
      highs[i] = static_cast<uint32_t>(lanes[i] >> 32);
    }
  };
  gather(a[0], a[1], all_a[0], all_a[1]);
  gather(a[2], a[3], all_a[2], all_a[3]);
  gather(b0, b1, all_b[0], all_b[1]);
  const int group = emulator::lane() / 4, place = emulator::lane() % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = group + i / 2 * 8, column = 2 * place + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int from = k % 8 / 2, high = k / 8;
      d[i] += tile_element<T>(all_a[row / 8 + 2 * high][row % 8 * 4 + from], k % 2) *
              tile_element<T>(all_b[high][column * 4 + from], k % 2);
    }
  }
}
template <bool transposed>
void load_matrices(uint32_t (&to)[4], const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    throw Error(ErrorCode::kInternal, "a row of a matrix is not aligned", "the emulated GPU");
  }
  const uint64_t* lanes = emulator::exchange(reinterpret_cast<uintptr_t>(row));
  const int group = emulator::lane() / 4, place = emulator::lane() % 4;
  for (int m = 0; m < 4; ++m) {
    uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      const int r = transposed ? 2 * place + e : group, c = transposed ? group : 2 * place + e;
      pair[e] = reinterpret_cast<const uint16_t*>(lanes[8 * m + r])[c];
    }
    std::memcpy(&to[m], pair, sizeof pair);
  }
}

inline void atomic_add(uint32_t* to, uint32_t value) { *to += value; }
inline void atomic_max(int32_t* to, int32_t value) {
  if (*to < value) *to = value;
}

}  // namespace fleet::cuda
