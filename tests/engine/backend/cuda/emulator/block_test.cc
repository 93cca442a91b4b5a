#include "tests/engine/backend/cuda/emulator/block.h"

#include <gtest/gtest.h>

#include "backend/cuda/types.h"

namespace fleet {
namespace {

__global__ void sum_blocks(const float* x, float* sums, int64_t count) {
  const int64_t i = cuda::thread_index();
  const float sum = cuda::block_sum<cuda::kBlock>(i < count ? x[i] : 0);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

TEST(EmulatedBlock, BlockReduction_SumsEachBlock) {
  std::vector<float> x(600), sums(3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  cuda::launch(sum_blocks, 3, cuda::kBlock, 0, nullptr, x.data(), sums.data(), 600);
  EXPECT_EQ(sums, (std::vector<float>{255 * 128, (256 + 511) * 128, (512 + 599) * 44}));
}

__global__ void reverse(int* values) {
  int* shared = cuda::dynamic_shared<int>();
  shared[threadIdx.x] = values[threadIdx.x];
  cuda::block_barrier();
  values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

TEST(EmulatedBlock, SharedMemory_IsSeenByAllThreadsAfterTheBarrier) {
  std::vector<int> values{1, 2, 3, 4, 5};
  cuda::launch(reverse, 1, 5, 5 * sizeof(int), nullptr, values.data());
  EXPECT_EQ(values, (std::vector<int>{5, 4, 3, 2, 1}));
}

__global__ void warp_functions(unsigned* out) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  out[threadIdx.x] = cuda::ballot(lane % 2 == 0);
  out[threadIdx.x] += static_cast<unsigned>(cuda::shuffle(lane, 3));
  out[threadIdx.x] += static_cast<unsigned>(cuda::shuffle_xor(lane, 1)) << 8;
}

TEST(EmulatedBlock, WarpFunctions_ExchangeWithinTheWarp) {
  std::vector<unsigned> out(64);
  cuda::launch(warp_functions, 1, 64, 0, nullptr, out.data());
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(out[i], 0x55555555u + 3 + ((i % 32 ^ 1) << 8)) << i;
}

__global__ void lacks_a_barrier(int* out) {
  int* shared = cuda::dynamic_shared<int>();
  shared[threadIdx.x] = 1;
  out[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x] + shared[0];
}

TEST(EmulatedBlock, MissingBarrier_ShowsInOneOfTheOrders) {
  int wrong = 0;
  for (int launch = 0; launch < 2; ++launch) {
    std::vector<int> values(8);
    cuda::launch(lacks_a_barrier, 1, 8, 8 * sizeof(int), nullptr, values.data());
    wrong += values != std::vector<int>(8, 2);
  }
  EXPECT_GT(wrong, 0);
}

__global__ void shuffle_of_some(int* out) {
  if (threadIdx.x < 7) out[0] = cuda::shuffle(1, 0);
}
__global__ void barrier_of_some(int*) {
  if (threadIdx.x < 32) {
    cuda::block_barrier();
  } else {
    cuda::shuffle(1, 0);
    cuda::block_barrier();
    cuda::block_barrier();
  }
}
__global__ void barrier_after_return(int* out) {
  if (threadIdx.x < 9) return;
  cuda::block_barrier();
  out[0] = 5;
}

TEST(EmulatedBlock, ShuffleThatNotAllLanesReach_IsAnError) {
  int out = 0;
  EXPECT_THROW(cuda::launch(shuffle_of_some, 1, 32, 0, nullptr, &out), Error);
}

TEST(EmulatedBlock, BarrierAfterSomeReturned_WaitsForTheOthers) {
  int out = 0;
  cuda::launch(barrier_after_return, 1, 32, 0, nullptr, &out);
  EXPECT_EQ(out, 5);
  cuda::launch(barrier_of_some, 1, 64, 0, nullptr, &out);
}

}  // namespace
}  // namespace fleet
