// A block multiplies tiles of pixels by the weights of `columns` filters, one tile after the other.
// Its loads run kStages - 1 steps of kPanelDepth channels ahead, also from tile to tile, so that
// they continue while a result is stored. Blocks of the same pixels run next to each other: all but
// one find them in the L2 cache.
#include <algorithm>
#include <limits>

#include "backend/cuda/norm_tiles.h"
#include "backend/cuda/pointwise.h"
#include "backend/cuda/warpgroup.h"

namespace fleet::cuda {
namespace {

constexpr int kTileRows = 128;  // pixels: 16 for each of the block's 8 warps
constexpr int kWarps = kBlock / kWarp;
constexpr int kPacks = kPanelDepth / 8;     // 16-byte packs of a row of a panel
constexpr int kLoadRows = kBlock / kPacks;  // rows that a block loads at once
constexpr int64_t kMostParts = 512;

// Blocks on a multiprocessor, and the steps that a block loads ahead: about 96 KiB are on their
// way.
template <int columns>
inline constexpr int kBlocks = columns == 256 ? 1 : 2;
template <int columns>
inline constexpr int kStages = columns == 128 ? 3 : 4;
template <int columns>
inline constexpr int kStage = (kTileRows + columns) * kPanelDepth;  // elements

// Quotients of numbers below 2^31 as a product: a division takes many instructions and registers.
struct Divisor {
  uint32_t by, factor;
  int shift;
  explicit Divisor(int64_t value) : by(static_cast<uint32_t>(value)), shift(31) {
    while ((int64_t{1} << (shift - 31)) < value) ++shift;
    factor = static_cast<uint32_t>(((uint64_t{1} << shift) + by - 1) / by);
  }
  __device__ uint32_t quotient(uint32_t number) const {
    return static_cast<uint32_t>((uint64_t{number} * factor) >> shift);
  }
};

template <typename T>
struct PointwiseCall {
  const T *x, *weight;
  const float *factor, *constant, *pivot;
  T* y;
  float* partial;  // [part][2][filters]
  int rows;        // pixels of y
  int depth, filters, steps, row_tiles, column_tiles;
  Divisor out_width, out_pixels;  // per image
  int stride, in_width, in_pixels;
  float least;  // value in the transformed image

  // Elements from x to the pixel that a row of y reads.
  __device__ int64_t source(int row) const {
    if (stride == 1) return static_cast<int64_t>(row) * depth;
    const auto r = static_cast<uint32_t>(row);
    const uint32_t image = out_pixels.quotient(r), pixel = r - image * out_pixels.by;
    const uint32_t h = out_width.quotient(pixel), w = pixel - h * out_width.by;
    return (static_cast<int64_t>(image) * in_pixels + (h * in_width + w) * stride) * depth;
  }
};

// The shared memory of a block.
template <typename T, int columns>
struct PointwiseShared {
  T* stages;
  float *pivot, *factor, *constant;

  static size_t bytes(int steps, bool transforms) {
    return kPanelAlign + kStages<columns> * kStage<columns> * sizeof(T) +
           (columns + (transforms ? 2 * steps * kPanelDepth : 0)) * sizeof(float);
  }
  __device__ explicit PointwiseShared(int steps) {
    char* begin = dynamic_shared<char>();
    begin += (kPanelAlign - reinterpret_cast<uintptr_t>(begin) % kPanelAlign) % kPanelAlign;
    stages = reinterpret_cast<T*>(begin);
    pivot = reinterpret_cast<float*>(stages + kStages<columns> * kStage<columns>);
    factor = pivot + columns;
    constant = factor + steps * kPanelDepth;
  }
};

// Loads one step of a tile of pixels and of the filters' weights.
template <int columns, typename T>
__device__ void load_step(const PointwiseCall<T>& c, int tile, int first_filter, int step, T* to) {
  const int pack = static_cast<int>(threadIdx.x % kPacks);
  const int begin = static_cast<int>(threadIdx.x / kPacks);
  const int channel = step * kPanelDepth + pack * 8;
  const bool inside = channel < c.depth;
  // Rows kLoadRows apart are permuted alike.
  static_assert(kLoadRows % 8 == 0);
  to += panel_offset(begin, pack);
#pragma unroll 2
  for (int i = 0; i < kTileRows / kLoadRows; ++i) {
    const int pixel = tile * kTileRows + begin + i * kLoadRows;
    const bool present = inside && pixel < c.rows;
    copy_async(to + i * kLoadRows * kPanelDepth, present ? c.x + c.source(pixel) + channel : c.x,
               present);
  }
  to += kTileRows * kPanelDepth;
#pragma unroll 2
  for (int i = 0; i < columns / kLoadRows; ++i) {
    const int filter = first_filter + begin + i * kLoadRows;
    const bool present = inside && filter < c.filters;
    copy_async(to + i * kLoadRows * kPanelDepth,
               present ? c.weight + (static_cast<uint32_t>(filter * c.depth) + channel) : c.weight,
               present);
  }
}

// Two elements of a register.
__device__ inline __half2 round_pair(float low, float high, __half) {
  return __floats2half2_rn(low, high);
}
__device__ inline __nv_bfloat162 round_pair(float low, float high, __nv_bfloat16) {
  return __floats2bfloat162_rn(low, high);
}
template <typename T>
__device__ uint32_t pair_of(float low, float high) {
  const auto pair = round_pair(low, high, T());
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
template <typename T>
__device__ void split_pair(uint32_t bits, float (&values)[2]) {
  Pack<T, 2> pair;
  memcpy(&pair, &bits, sizeof bits);
  values[0] = to_float(pair.at[0]);
  values[1] = to_float(pair.at[1]);
}

// Two elements of a register, transformed and rounded again.
template <typename T>
__device__ uint32_t transform_pair(uint32_t bits, const float* factor, const float* constant,
                                   float least) {
  float values[2];
  split_pair<T>(bits, values);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float value = values[i] * factor[i] + constant[i];
    values[i] = value <= least ? least : value;
  }
  return pair_of<T>(values[0], values[1]);
}

// The warp's 16 rows of a panel as the left side of a product, transformed if the call says so.
template <typename T>
__device__ void load_pixels(const PointwiseCall<T>& c, const T* panel, const float* factor,
                            const float* constant, uint32_t (&left)[4][4]) {
  const unsigned lane = threadIdx.x % kWarp, row = threadIdx.x / kWarp * 16 + lane % 16;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    load_matrices<false>(left[k], panel + panel_offset(row, 2 * k + lane / 16));
    if (!c.factor) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned column = 16 * k + 8 * half + lane % 4 * 2;
      const Pack<float, 2> f = load_pack<2>(factor, column), e = load_pack<2>(constant, column);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        left[k][2 * half + i] = transform_pair<T>(left[k][2 * half + i], f.at, e.at, c.least);
      }
    }
  }
}

// Lane t of each four gets element t of all four.
__device__ inline void transpose_four(uint32_t (&at)[4]) {
  const unsigned lane = threadIdx.x;
  const auto exchange = [&](uint32_t& low, uint32_t& high, int distance) {
    const bool upper = (lane & distance) != 0;
    const uint32_t other = shuffle_xor(upper ? low : high, distance);
    (upper ? low : high) = other;
  };
  exchange(at[0], at[1], 1);
  exchange(at[2], at[3], 1);
  exchange(at[0], at[2], 2);
  exchange(at[1], at[3], 2);
}

// Adds `count` values over the eight lanes that have the same columns; each lane keeps one eighth.
template <int count>
__device__ float add_over_rows(const float (&values)[count]) {
  if constexpr (count == 1) {
    return values[0];
  } else {
    constexpr int kHalf = count / 2;
    const int distance = 4 * kHalf;
    const bool upper = (threadIdx.x & distance) != 0;
    float kept[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float other = shuffle_xor(upper ? values[i] : values[i + kHalf], distance);
      kept[i] = (upper ? values[i + kHalf] : values[i]) + other;
    }
    return add_over_rows<kHalf>(kept);
  }
}

// Stores the results of a tile's warp, and adds to its sums. Sum `i` of a lane belongs to columns
// 16 i to 16 i + 15: bits 4, 3 and 2 of the lane choose the result [16, 8], its column of two and
// sum or squares.
template <int columns, typename T>
__device__ void store_tile(const PointwiseCall<T>& c, const float (&results)[columns / 64][32],
                           int first_row, int first_filter, const float* pivot,
                           float (&totals)[columns / 16]) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), place = static_cast<int>(threadIdx.x % 4);
#pragma unroll
  for (int four = 0; four < columns / 32; ++four) {
    uint32_t packed[2][4];  // by row and result [16, 8]
#pragma unroll
    for (int two = 0; two < 2; ++two) {
      float values[8] = {};
#pragma unroll
      for (int j = 2 * two; j < 2 * two + 2; ++j) {
        const Pack<float, 2> from = load_pack<2>(pivot, four * 32 + j * 8 + place * 2);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float* result = &results[four / 2][four % 2 * 16 + j * 4 + 2 * r];
          packed[r][j] = pair_of<T>(result[0], result[1]);
          float rounded[2];
          split_pair<T>(packed[r][j], rounded);
          const bool counts = first_row + lane / 4 + 8 * r < c.rows;
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float difference = counts ? rounded[i] - from.at[i] : 0;
            values[j % 2 * 4 + i * 2] += difference;
            values[j % 2 * 4 + i * 2 + 1] += difference * difference;
          }
        }
      }
      totals[2 * four + two] += add_over_rows(values);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      transpose_four(packed[r]);
      const int row = first_row + lane / 4 + 8 * r;
      const int filter = first_filter + four * 32 + place * 8;
      if (row >= c.rows || filter >= c.filters) continue;
      Pack<T, 8> pack;
      memcpy(&pack, packed[r], sizeof pack);
      store_pack<8>(c.y, static_cast<int64_t>(row) * c.filters + filter, pack);
    }
  }
}

// The block's sums, over its warps in order. shared: kWarps * 2 * columns values.
template <int columns, typename T>
__device__ void store_sums(const PointwiseCall<T>& c, const float (&totals)[columns / 16], int part,
                           int first_filter, float* shared) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int column = lane / 16 * 8 + lane % 4 * 2 + lane / 8 % 2, which = lane / 4 % 2;
#pragma unroll
  for (int i = 0; i < columns / 16; ++i) {
    shared[(warp * 2 + which) * columns + i * 16 + column] = totals[i];
  }
  block_barrier();
  for (int i = static_cast<int>(threadIdx.x); i < 2 * columns; i += kBlock) {
    const int filter = first_filter + i % columns;
    if (filter >= c.filters) continue;
    float sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += shared[w * 2 * columns + i];
    c.partial[(static_cast<int64_t>(part) * 2 + i / columns) * c.filters + filter] = sum;
  }
}

template <typename T, int columns>
__global__ void __launch_bounds__(kBlock, kBlocks<columns>) multiply_pixels(PointwiseCall<T> c) {
  const PointwiseShared<T, columns> shared(c.steps);
  const int part = static_cast<int>(blockIdx.x) / c.column_tiles;
  const int parts = static_cast<int>(gridDim.x) / c.column_tiles;
  const int first_filter = static_cast<int>(blockIdx.x) % c.column_tiles * columns;
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  for (int i = static_cast<int>(threadIdx.x); i < columns; i += kBlock) {
    shared.pivot[i] = c.pivot && first_filter + i < c.filters ? c.pivot[first_filter + i] : 0;
  }
  // Channels behind the last are 0 after the transformation, too.
  for (int i = static_cast<int>(threadIdx.x); c.factor && i < c.steps * kPanelDepth; i += kBlock) {
    shared.factor[i] = i < c.depth ? c.factor[i] : 0;
    shared.constant[i] = i < c.depth ? c.constant[i] : 0;
  }
  int next_tile = part, next_step = 0;  // to load
  const auto load = [&](int stage) {
    if (next_tile < c.row_tiles) {
      load_step<columns>(c, next_tile, first_filter, next_step,
                         shared.stages + stage * kStage<columns>);
      if (++next_step == c.steps) {
        next_step = 0;
        next_tile += parts;
      }
    }
    end_copies();
  };
  for (int i = 0; i < kStages<columns> - 1; ++i) load(i);
  float results[columns / 64][32] = {};
  float totals[columns / 16] = {};
  int stage = 0, free_stage = kStages<columns> - 1;
  for (int tile = part; tile < c.row_tiles; tile += parts) {
    for (int step = 0; step < c.steps; ++step) {
      wait_for_copies<kStages<columns> - 2>();
      block_barrier();  // all have arrived, and all threads have used the stage before this one
      load(free_stage);
      const T* pixels = shared.stages + stage * kStage<columns>;
      uint32_t left[4][4];
      load_pixels(c, pixels, shared.factor + step * kPanelDepth,
                  shared.constant + step * kPanelDepth, left);
      multiply_panel(results, left, pixels + kTileRows * kPanelDepth, step > 0);
      free_stage = stage;
      stage = stage + 1 == kStages<columns> ? 0 : stage + 1;
    }
    store_tile<columns>(c, results, tile * kTileRows + warp * 16, first_filter, shared.pivot,
                        totals);
  }
  wait_for_copies<0>();
  block_barrier();
  store_sums<columns>(c, totals, part, first_filter, reinterpret_cast<float*>(shared.stages));
}

template <typename T, int columns>
int64_t launch_pointwise(Device& device, PointwiseCall<T> call, cudaStream_t stream) {
  call.column_tiles = static_cast<int>(ceil_div(call.filters, columns));
  const int64_t resident =
      int64_t{cuda_device(device).properties().multiProcessorCount} * kBlocks<columns>;
  const int64_t parts = std::clamp<int64_t>(resident / call.column_tiles, 1,
                                            std::min<int64_t>(kMostParts, call.row_tiles));
  launch(multiply_pixels<T, columns>, blocks_for(parts * call.column_tiles, 1), kBlock,
         PointwiseShared<T, columns>::bytes(call.steps, call.factor != nullptr), stream, call);
  return parts;
}

// Filters of a block: as many as there are, up to 256, and then no block without any.
template <typename T>
int64_t launch_pointwise(Device& device, const PointwiseCall<T>& call, cudaStream_t stream) {
  if (call.filters <= 64) return launch_pointwise<T, 64>(device, call, stream);
  if (call.filters % 256 == 0) return launch_pointwise<T, 256>(device, call, stream);
  return launch_pointwise<T, 128>(device, call, stream);
}

int64_t rows_of(const Convolution& c) { return c.batch * c.out[0] * c.out[1]; }
NormShape result_shape(const Convolution& c) {
  return {.dtype = c.dtype, .rows = rows_of(c), .channels = c.filters};
}

}  // namespace

bool takes_pointwise(Device* device, const Convolution& c, NormActivation activation) {
  const Window& w = c.window;
  // The transformation's values of the longest image fit into shared memory.
  constexpr int64_t kMostChannels = 2048;
  const bool fits = c.dtype != DType::kFloat32 && c.groups == 1 && !c.relu &&
                    w.kernel[0] * w.kernel[1] == 1 && w.strides[0] == w.strides[1] &&
                    w.paddings[0] + w.paddings[1] + w.ends[0] + w.ends[1] == 0 &&
                    c.channels % 8 == 0 && c.filters % 8 == 0 && c.channels <= kMostChannels &&
                    c.in_pixel == c.channels && c.out_pixel == c.filters &&
                    rows_of(c) < std::numeric_limits<int32_t>::max() - kTileRows;
  return fits && (activation == NormActivation::kNone || activation == NormActivation::kRelu) &&
         (!device || cuda_device(*device).properties().major == 9);
}

size_t pointwise_workspace(const Convolution& c) {
  const int64_t parts = std::min(kMostParts, ceil_div(rows_of(c), kTileRows));
  return static_cast<size_t>(parts * 2 * c.filters) * sizeof(float);
}

void pointwise_sums_forward(Device& device, const Convolution& c, const void* x, const void* weight,
                            const PointwiseInput& input, const float* pivot, void* y, float* sum,
                            float* squares, void* workspace, cudaStream_t stream) {
  const auto run = [&]<typename T>(T) {
    const PointwiseCall<T> call{.x = static_cast<const T*>(x),
                                .weight = static_cast<const T*>(weight),
                                .factor = input.factor,
                                .constant = input.constant,
                                .pivot = pivot,
                                .y = static_cast<T*>(y),
                                .partial = static_cast<float*>(workspace),
                                .rows = static_cast<int>(rows_of(c)),
                                .depth = static_cast<int>(c.channels),
                                .filters = static_cast<int>(c.filters),
                                .steps = static_cast<int>(ceil_div(c.channels, kPanelDepth)),
                                .row_tiles = static_cast<int>(ceil_div(rows_of(c), kTileRows)),
                                .column_tiles = 0,  // by launch_pointwise()
                                .out_width = Divisor(c.out[1]),
                                .out_pixels = Divisor(c.out[0] * c.out[1]),
                                .stride = static_cast<int>(c.window.strides[0]),
                                .in_width = static_cast<int>(c.in[1]),
                                .in_pixels = static_cast<int>(c.in[0] * c.in[1]),
                                .least = input.activation == NormActivation::kRelu
                                             ? 0
                                             : -std::numeric_limits<float>::infinity()};
    const int64_t parts = launch_pointwise(device, call, stream);
    finish_norm_sums(result_shape(c), call.partial, parts, sum, squares, stream);
  };
  if (c.dtype == DType::kFloat16) {
    run(__half());
  } else {
    run(__nv_bfloat16());
  }
}

}  // namespace fleet::cuda
