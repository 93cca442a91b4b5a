// Stands in front of lib/engine/backend/cuda/warpgroup.h, as launch.h does. A copy arrives when its
// thread waits for it, not before, so that a kernel that reads too early reads something else.
#pragma once

#include <vector>

#include "backend/cuda/launch.h"

namespace fleet::cuda {

inline constexpr int kWarpgroup = 128;
inline constexpr int kPanelDepth = 64;
inline constexpr int kPanelAlign = 1024;
inline constexpr size_t kMostShared = 227 << 10;

struct AsyncCopy {
  void* to;
  const void* from;
  int group;
};
struct AsyncCopies {
  std::vector<AsyncCopy> waiting;
  int ended = 0;  // groups
};
// By thread of the running block; a kernel that ends waits for its copies first.
inline std::vector<AsyncCopies> async_copies(1024);
inline AsyncCopies& own_copies() { return async_copies[threadIdx.x]; }

inline void copy_async(void* to, const void* from, bool present) {
  if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
    throw Error(ErrorCode::kInternal, "a copy is not aligned", "the emulated GPU");
  }
  own_copies().waiting.push_back({to, present ? from : nullptr, own_copies().ended});
}
inline void end_copies() { ++own_copies().ended; }
template <int groups>
void wait_for_copies() {
  AsyncCopies& own = own_copies();
  std::erase_if(own.waiting, [&](const AsyncCopy& copy) {
    if (copy.group >= own.ended - groups) return false;
    if (copy.from) {
      std::memcpy(copy.to, copy.from, 16);
    } else {
      std::memset(copy.to, 0, 16);
    }
    return true;
  });
}

constexpr unsigned panel_offset(unsigned row, unsigned pack) {
  return row * kPanelDepth + (pack ^ (row % 8)) * 8;
}

// The permutation is that of the hardware: it exchanges bits of the address.
template <typename T>
float panel_element(const T* panel, int row, int column) {
  uintptr_t at =
      reinterpret_cast<uintptr_t>(panel) + row * kPanelDepth * sizeof(T) + column * sizeof(T);
  at ^= (at >> 7 & 7) << 4;
  return static_cast<float>(*reinterpret_cast<const T*>(at));
}
template <typename T, int groups>
void multiply_panel(float (&sums)[groups][32], const uint32_t (&left)[4][4], const T* panel,
                    bool adds) {
  if (reinterpret_cast<uintptr_t>(panel) % kPanelAlign != 0) {
    throw Error(ErrorCode::kInternal, "a panel is not aligned", "the emulated GPU");
  }
  const int group = emulator::lane() / 4, place = emulator::lane() % 4;
  float rows[2][kPanelDepth];  // of the left side: those of this lane's results
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 4; ++i) {
      const uint64_t* lanes = emulator::exchange(left[k][i]);
      for (int from = 0; from < 4; ++from) {
        for (int half = 0; half < 2; ++half) {
          rows[i % 2][16 * k + i / 2 * 8 + 2 * from + half] =
              tile_element<T>(static_cast<uint32_t>(lanes[4 * group + from]), half);
        }
      }
    }
  }
  for (int g = 0; g < groups; ++g) {
    for (int i = 0; i < 32; ++i) {
      const int column = 64 * g + i / 4 * 8 + 2 * place + i % 2;
      float sum = adds ? sums[g][i] : 0;
      for (int k = 0; k < kPanelDepth; ++k) {
        sum += rows[i % 4 / 2][k] * panel_element(panel, column, k);
      }
      sums[g][i] = sum;
    }
  }
}

}  // namespace fleet::cuda
