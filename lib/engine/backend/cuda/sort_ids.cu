#include <utility>

#include "backend/cuda/sort_ids.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

constexpr int kDigitBits = 8, kDigitBins = 1 << kDigitBits;  // a bin per thread of a block
constexpr int kSortWarps = kBlock / kWarp;
constexpr int64_t kSortTile = 8 * kBlock;  // ids per block
static_assert(kDigitBins == kBlock);

__device__ inline int bits_set(unsigned bits) {
  bits -= (bits >> 1) & 0x55555555u;
  bits = (bits & 0x33333333u) + ((bits >> 2) & 0x33333333u);
  return static_cast<int>((((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

template <typename Id>
__global__ void load_ids(int64_t count, const Id* from, int64_t rows, int64_t ignored,
                         uint32_t* ids, uint32_t* positions) {
  const int64_t i = thread_index();
  if (i >= count) return;
  const auto id = static_cast<int64_t>(from[i]);
  ids[i] = static_cast<uint32_t>(id < 0 || id >= rows || id == ignored ? rows : id);
  positions[i] = static_cast<uint32_t>(i);
}

// counts[bin][tile]: ids of the tile with this digit.
__global__ void count_sort_digits(int64_t count, const uint32_t* ids, int shift, uint32_t* counts) {
  __shared__ uint32_t bins[kDigitBins];
  bins[threadIdx.x] = 0;
  block_barrier();
  const int64_t begin = blockIdx.x * kSortTile;
  for (int64_t i = begin + threadIdx.x; i < begin + kSortTile && i < count; i += kBlock) {
    atomic_add(bins + ((ids[i] >> shift) % kDigitBins), 1);
  }
  block_barrier();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

// One block: each count becomes the sum of those before it.
__global__ void sum_sort_counts(int64_t tiles, uint32_t* counts) {
  __shared__ uint32_t sums[kDigitBins];
  uint32_t* own = counts + threadIdx.x * tiles;
  uint32_t sum = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) sum += own[tile];
  sums[threadIdx.x] = sum;
  block_barrier();
  uint32_t before = 0;
  for (unsigned bin = 0; bin < threadIdx.x; ++bin) before += sums[bin];
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const uint32_t here = own[tile];
    own[tile] = before;
    before += here;
  }
}

// Moves the ids of a tile behind those with smaller digits and those before them.
__global__ void scatter_ids(int64_t count, const uint32_t* ids, const uint32_t* positions,
                            int shift, const uint32_t* offsets, uint32_t* to_ids,
                            uint32_t* to_positions) {
  __shared__ uint32_t next[kDigitBins], warps[kSortWarps][kDigitBins];
  const unsigned thread = threadIdx.x, warp = thread / kWarp, lane = thread % kWarp;
  next[thread] = offsets[static_cast<int64_t>(thread) * gridDim.x + blockIdx.x];
  const int64_t begin = blockIdx.x * kSortTile;
  for (int64_t round = begin; round < begin + kSortTile && round < count; round += kBlock) {
    const int64_t i = round + thread;
    const bool valid = i < count;
    const uint32_t id = valid ? ids[i] : 0, digit = (id >> shift) % kDigitBins;
    unsigned same = ballot(valid);  // lanes with this digit
    for (int bit = 0; bit < kDigitBits; ++bit) {
      const bool set = (digit >> bit & 1) != 0;
      const unsigned votes = ballot(set);
      same &= set ? votes : ~votes;
    }
    const auto rank = static_cast<uint32_t>(bits_set(same & ((1u << lane) - 1)));
    for (int w = 0; w < kSortWarps; ++w) warps[w][thread] = 0;
    block_barrier();
    if (valid && rank == 0) warps[warp][digit] = static_cast<uint32_t>(bits_set(same));
    block_barrier();
    uint32_t sum = next[thread];  // for the bin `thread`
    for (int w = 0; w < kSortWarps; ++w) {
      const uint32_t here = warps[w][thread];
      warps[w][thread] = sum;
      sum += here;
    }
    next[thread] = sum;
    block_barrier();
    if (valid) {
      const uint32_t to = warps[warp][digit] + rank;
      to_ids[to] = id;
      to_positions[to] = positions[i];
    }
    block_barrier();
  }
}

int64_t sort_tiles(int64_t count) { return ceil_div(count, kSortTile); }

}  // namespace

size_t sort_workspace(int64_t count) {
  return static_cast<size_t>(4 * count + kDigitBins * sort_tiles(count)) * sizeof(uint32_t);
}

SortedIds sort_ids(cudaStream_t stream, const Argument& ids, int64_t rows, int64_t ignored,
                   void* workspace) {
  const int64_t count = ids.shape.elements(), tiles = sort_tiles(count);
  auto* from = static_cast<uint32_t*>(workspace);  // ids, then their positions
  uint32_t *to = from + 2 * count, *counts = to + 2 * count;
  if (ids.dtype == DType::kInt32) {
    launch(load_ids<int32_t>, blocks_for(count), kBlock, 0, stream, count, ids.as<const int32_t>(),
           rows, ignored, from, from + count);
  } else {
    launch(load_ids<int64_t>, blocks_for(count), kBlock, 0, stream, count, ids.as<const int64_t>(),
           rows, ignored, from, from + count);
  }
  const unsigned blocks = blocks_for(tiles, 1);
  for (int shift = 0; shift < 32 && rows >> shift > 0; shift += kDigitBits) {
    launch(count_sort_digits, blocks, kBlock, 0, stream, count, from, shift, counts);
    launch(sum_sort_counts, 1, kBlock, 0, stream, tiles, counts);
    launch(scatter_ids, blocks, kBlock, 0, stream, count, from, from + count, shift, counts, to,
           to + count);
    std::swap(from, to);
  }
  return {.ids = from, .positions = from + count};
}

}  // namespace fleet::cuda
