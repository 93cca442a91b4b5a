// The elements of an image by channels: contiguous runs of memory that hold one channel or one
// block of channels of one image.
#pragma once

#include "backend/cpu/elementwise.h"
#include "exec/kernel.h"

// 64-byte vectors stay inside always-inlined functions, so no ABI depends on them.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace fleet::cpu {

// Tiles: 16 elements as one value of the widest registers available, for loops inside FLEET_SIMD
// functions. In memory, elements are float or bfloat16 with any alignment; as a value, they are
// floats.

inline constexpr int64_t kTileLanes = 16;

using Tile = float __attribute__((vector_size(64), aligned(4), may_alias));
using TileFlags = int32_t __attribute__((vector_size(64)));
using TileWords = uint32_t __attribute__((vector_size(64)));
using TileHalves = uint16_t __attribute__((vector_size(32), aligned(2), may_alias));
using TileBytes = int8_t __attribute__((vector_size(16)));

FLEET_INLINE Tile load(const float* from) { return *reinterpret_cast<const Tile*>(from); }
FLEET_INLINE Tile load(const BFloat16* from) {
  const TileHalves narrow = *reinterpret_cast<const TileHalves*>(from);
  return reinterpret_cast<Tile>(__builtin_convertvector(narrow, TileWords) << 16);
}

FLEET_INLINE TileHalves narrowed(const Tile& value) {
  TileWords narrow;
  narrow_to_bfloat16(reinterpret_cast<TileWords>(value), narrow);
  return __builtin_convertvector(narrow, TileHalves);
}

FLEET_INLINE void store(float* to, const Tile& value) { *reinterpret_cast<Tile*>(to) = value; }
FLEET_INLINE void store(BFloat16* to, const Tile& value) {
  *reinterpret_cast<TileHalves*>(to) = narrowed(value);
}

// Converts flags (all bits of a lane, or none) to one bit per lane, and back.
FLEET_INLINE uint16_t bits_of(const TileFlags& flags) {
  const TileBytes bytes = __builtin_convertvector(flags, TileBytes);
#if defined(__SSE2__)
  using Chars = char __attribute__((vector_size(16)));
  return static_cast<uint16_t>(__builtin_ia32_pmovmskb128(reinterpret_cast<Chars>(bytes)));
#else
  uint16_t bits = 0;
  for (int l = 0; l < kTileLanes; ++l) bits |= static_cast<uint16_t>((bytes[l] & 1) << l);
  return bits;
#endif
}
FLEET_INLINE Tile where_bits(uint16_t bits, const Tile& value) {
  const TileFlags lanes = {1 << 0, 1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                           1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  const TileFlags flags = (lanes & static_cast<int32_t>(bits)) != 0;
  return reinterpret_cast<Tile>(reinterpret_cast<TileFlags>(value) & flags);
}

// Functions over a run take their constants as tiles of values that repeat along it. This serves
// plain layouts (one channel per run) and blocks of 8 or 16 channels alike.

// Channels per block of an image in the layout that convolutions prefer here: 16 with AVX-512, else
// 8 with AVX2, else 1 (no blocks).
int64_t native_channel_block();
// [N, C, H, W] in blocks of channels, padded to whole ones. Plain if `block` is 1.
Layout blocked_image(const Shape& shape, int64_t block);

// Whether a layout consists of such runs; the plain one does.
bool has_channel_runs(const Layout& layout, const Shape& shape);
// The layout of input 0 if it does, else the plain one.
Layout channel_run_layout(const LayoutQuery& query);

struct ChannelRuns {
  // x: N, C, ... in a layout for which has_channel_runs().
  ChannelRuns(const Shape& shape, const Layout& layout);

  int64_t images, channels, lanes, groups;  // lanes: channels per run; groups: runs per image
  int64_t length, tiles;                    // per run, in elements and in tiles (rounded up)
  int64_t values;                           // per channel, over all images
  int64_t image_stride, group_stride;
  int64_t offset(int64_t image, int64_t group) const {
    return image * image_stride + group * group_stride;
  }
  // Index of the run's first tile, if runs are stored one after another in whole tiles.
  int64_t tile(int64_t image, int64_t group) const { return (image * groups + group) * tiles; }
  // tile[i] = values[channel of element i], 0 for padding channels.
  template <typename From>
  void fill(float* tile, int64_t group, From value) const {
    for (int64_t i = 0; i < kTileLanes; ++i) {
      const int64_t channel = group * lanes + (i & (lanes - 1));  // lanes is a power of two
      tile[i] = channel < channels ? static_cast<float>(value(channel)) : 0.0f;
    }
  }
  // The sum of the tile's elements that belong to a lane.
  double fold(const double* tile, int64_t lane) const {
    double sum = 0;
    for (int64_t i = lane; i < kTileLanes; i += lanes) sum += tile[i];
    return sum;
  }
};

// For each group, runs first(group, image) on all images, then middle(group), then last(group,
// image) on all images. If the images have `large` bytes, one thread processes one group after
// another, while its memory is in the cache; otherwise memory is traversed sequentially. The
// results do not depend on the number of threads.
inline constexpr size_t kLarge = size_t{32} << 20;  // below this, sequential access is faster
template <typename First, typename Middle, typename Last>
void for_each_group(const ChannelRuns& runs, size_t element_size, size_t large, First first,
                    Middle middle, Last last) {
  const size_t bytes = static_cast<size_t>(runs.images * runs.image_stride) * element_size;
  if (runs.groups >= 2 * omp_get_max_threads() && bytes >= large) {
#pragma omp parallel for
    for (int64_t group = 0; group < runs.groups; ++group) {
      for (int64_t image = 0; image < runs.images; ++image) first(group, image);
      middle(group);
      for (int64_t image = 0; image < runs.images; ++image) last(group, image);
    }
    return;
  }
#pragma omp parallel for collapse(2)
  for (int64_t image = 0; image < runs.images; ++image) {
    for (int64_t group = 0; group < runs.groups; ++group) first(group, image);
  }
#pragma omp parallel for
  for (int64_t group = 0; group < runs.groups; ++group) middle(group);
#pragma omp parallel for collapse(2)
  for (int64_t image = 0; image < runs.images; ++image) {
    for (int64_t group = 0; group < runs.groups; ++group) last(group, image);
  }
}

}  // namespace fleet::cpu
