// Additions to launch.h for kernels of compute capability 9.0 (sm_90a): copies to shared memory
// that run while the threads compute, and products of a warpgroup, four consecutive warps, on
// tensor cores. The tests replace this header as they do launch.h.
#pragma once

#include "backend/cuda/launch.h"

namespace fleet::cuda {

inline constexpr int kWarpgroup = 128;
// Elements of 16 bits in a row of a panel: 128 bytes.
inline constexpr int kPanelDepth = 64;
inline constexpr int kPanelAlign = 1024;  // bytes
// Most dynamic shared memory of a block.
inline constexpr size_t kMostShared = 227 << 10;

// Begins to copy 16 bytes to shared memory, or to fill them with zeros. Both addresses must be
// 16-byte aligned.
__device__ inline void copy_async(void* to, const void* from, bool present) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
               "r"(present ? 16 : 0)
               : "memory");
#else
  __trap();  // not chosen for such GPUs
#endif
}
// Ends a group: this thread's copies since the last one.
__device__ inline void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until this thread's groups have arrived, except for the last `groups`. After the next
// block_barrier(), all threads may read them, and multiply_panel() too.
template <int groups>
__device__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#else
  __trap();
#endif
}

// A panel is a tile in shared memory, rows of kPanelDepth elements, aligned to kPanelAlign. The
// eight packs of a row, of eight elements each, are permuted, so that eight rows' packs of one
// column are in different banks.
__host__ __device__ constexpr unsigned panel_offset(unsigned row, unsigned pack) {
  return row * kPanelDepth + (pack ^ (row % 8)) * 8;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define FLEET_SUMS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define FLEET_MULTIPLY_64(type)                                                                  \
  asm volatile(                                                                                  \
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                               \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                \
      " {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23," \
      "%24,%25,%26,%27,%28,%29,%30,%31},{%32,%33,%34,%35},%36,p,1,1,0;\n}"                       \
      : FLEET_SUMS_4(0), FLEET_SUMS_4(4), FLEET_SUMS_4(8), FLEET_SUMS_4(12), FLEET_SUMS_4(16),   \
        FLEET_SUMS_4(20), FLEET_SUMS_4(24), FLEET_SUMS_4(28)                                     \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(panel), "r"(adds))

template <typename T>
__device__ __forceinline__ void multiply_async(float (&d)[32], const uint32_t (&a)[4],
                                               uint64_t panel, int adds) {
  if constexpr (std::is_same_v<T, __half>) {
    FLEET_MULTIPLY_64("f16");
  } else {
    FLEET_MULTIPLY_64("bf16");
  }
}
#undef FLEET_MULTIPLY_64
#undef FLEET_SUMS_4
#endif

// sums[64, 64 groups] = or (with `adds`) += left[64, kPanelDepth] panel[64 groups, kPanelDepth]
// transposed, spread over the warpgroup as PTX's wgmma.m64nNk16 says: warp w has rows 16 w to
// 16 w + 15. left[k] has their columns 16 k to 16 k + 15, as multiply_tiles() takes them;
// sums[g][4 j + i] is element i of the result [16, 8] with columns 64 g + 8 j on, as
// multiply_tiles() gives it. All threads of the warpgroup must call it.
// Inlined, so that the sums stay in registers.
template <typename T, int groups>
__device__ __forceinline__ void multiply_panel(float (&sums)[groups][32],
                                               const uint32_t (&left)[4][4], const T* panel,
                                               bool adds) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // The compiler must not move the sums while the products run.
  const auto settle = [&] {
#pragma unroll
    for (int g = 0; g < groups; ++g) {
#pragma unroll
      for (int i = 0; i < 32; ++i) asm volatile("" : "+f"(sums[g][i])::"memory");
    }
  };
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(panel));
  // Rows in permuted groups of eight, 1,024 bytes apart; in units of 16 bytes.
  const uint64_t first =
      uint64_t{address / 16} | uint64_t{1} << 16 | uint64_t{64} << 32 | uint64_t{1} << 62;
  settle();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int g = 0; g < groups; ++g) {
      multiply_async<T>(sums[g], left[k], first + k * 2 + g * 512, adds || k > 0);
    }
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  settle();
#else
  __trap();
#endif
}

}  // namespace fleet::cuda
