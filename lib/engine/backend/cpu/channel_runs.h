// The elements of images by channels: runs of memory that hold one channel or one block of channels
// of one image, or some channels of a number of pixels.
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

// Functions over a run take constants that repeat along it. This serves plain layouts (one channel
// per run), blocks of 8 or 16 channels, and channels last alike.

// Tiles that a row of a run may have: 2048 channels.
inline constexpr int64_t kMaxColumns = 128;

// `rows` rows of `columns` tiles, `stride` elements apart, and `tail` elements of one more row.
// Constants repeat after a row. With one column, as in plain and blocked images, there are no gaps.
struct Span {
  int64_t rows, columns, stride, tail;

  // `stride`, or the constant that it is.
  template <bool kSingle>
  FLEET_INLINE static int64_t known(int64_t stride) {
    return kSingle ? kTileLanes : stride;
  }

  bool is_empty() const { return rows == 0 && tail == 0; }
  // The first rows, at most `count`; the tail comes with the last row. Removes them from this.
  Span take(int64_t count) {
    Span taken = *this;
    taken.rows = std::min(count, rows);
    rows -= taken.rows;
    (rows == 0 ? tail : taken.tail) = 0;
    return taken;
  }
  // Words of a mask (one per tile of memory) between rows.
  int64_t words() const { return stride / kTileLanes; }
};

// Calls body<kSingle>(): whether there is one column. body must be FLEET_INLINE.
template <typename Body>
FLEET_INLINE void with_columns(int64_t columns, Body body) {
  columns == 1 ? body.template operator()<true>() : body.template operator()<false>();
}

// Calls body(row, lane, constants(lane)) for each tile, which begins at element `lane` of its row.
// Several rows are read at a time, so that constants stay in registers and memory is still
// traversed sequentially.
template <bool kSingle, typename Constants, typename Body>
FLEET_INLINE void for_each_tile(const Span& s, Constants constants, Body body) {
  if constexpr (kSingle) {
    const auto values = constants(0);
    for (int64_t row = 0; row < s.rows; ++row) body(row, 0, values);
    return;
  }
  constexpr int64_t kRows = 4;
  const int64_t width = s.columns * kTileLanes;
  int64_t row = 0;
  for (; row + kRows <= s.rows; row += kRows) {
    for (int64_t lane = 0; lane < width; lane += kTileLanes) {
      const auto values = constants(lane);
#pragma GCC unroll 4
      for (int64_t r = 0; r < kRows; ++r) body(row + r, lane, values);
    }
  }
  for (; row < s.rows; ++row) {
    for (int64_t lane = 0; lane < width; lane += kTileLanes) body(row, lane, constants(lane));
  }
}

// sums[i] += tile[i]
FLEET_INLINE void add_tile(const Tile& tile, double* sums) {
  using Half = float __attribute__((vector_size(32)));
  using Doubles = double __attribute__((vector_size(64)));
  for (int part = 0; part < 2; ++part) {
    Half half;
    Doubles sum;
    std::memcpy(&half, reinterpret_cast<const char*>(&tile) + part * sizeof half, sizeof half);
    std::memcpy(&sum, sums + part * 8, sizeof sum);
    sum += __builtin_convertvector(half, Doubles);
    std::memcpy(sums + part * 8, &sum, sizeof sum);
  }
}

// Like for_each_tile(), for body(row, lane, constants(lane), first, second), which adds to two
// tiles; adds these to `firsts` and `seconds`, per position. Independent accumulators: an addition
// need not wait for the last.
template <bool kSingle, typename Constants, typename Body>
FLEET_INLINE void sum_tiles(const Span& s, double* firsts, double* seconds, Constants constants,
                            Body body) {
  constexpr int64_t kMost = kSingle ? 64 : 16;  // rows that are added up in float
  const int64_t width = kSingle ? kTileLanes : s.columns * kTileLanes;
  for (int64_t begin = 0; begin < s.rows; begin += kMost) {
    const int64_t end = std::min(begin + kMost, s.rows);
    for (int64_t lane = 0; lane < width; lane += kTileLanes) {
      const auto values = constants(lane);
      Tile first[4] = {}, second[4] = {};
      int64_t row = begin;
      for (; row + 4 <= end; row += 4) {
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) body(row + r, lane, values, first[r], second[r]);
      }
      for (; row < end; ++row) body(row, lane, values, first[0], second[0]);
      add_tile((first[0] + first[1]) + (first[2] + first[3]), firsts + lane);
      add_tile((second[0] + second[1]) + (second[2] + second[3]), seconds + lane);
    }
  }
}

// Channels per block of an image in the layout that convolutions prefer here: 16 with AVX-512, else
// 8 with AVX2, else 1 (no blocks).
int64_t native_channel_block();
// [N, C, H, W] in blocks of channels, padded to whole ones. Plain if `block` is 1.
Layout blocked_image(const Shape& shape, int64_t block);

// Whether images are in Layout::channels_last(), and not plain as well.
bool is_channels_last(const Layout& layout, const Shape& shape);
// Whether a layout consists of such runs; the plain one does.
bool has_channel_runs(const Layout& layout, const Shape& shape);
// The layout of input 0 if it does, else the plain one.
Layout channel_run_layout(const LayoutQuery& query);

// Constants and sums have `positions`: one for each element of a row through all groups. A channel
// has several positions if it repeats in a row.
struct ChannelRuns {
  // x: N, C, ... in a layout for which has_channel_runs().
  ChannelRuns(const Shape& shape, const Layout& layout);

  int64_t channels;
  int64_t parts;      // runs of each group: images, or pieces of a batch with channels last
  int64_t groups;     // runs of each part
  int64_t values;     // per channel, over all parts
  int64_t positions;  // a multiple of kTileLanes
  int64_t settled;    // channels that share no position with others

  // The run of a group in a part.
  Span span(int64_t part, int64_t group) const;
  // Its first element.
  int64_t offset(int64_t part, int64_t group) const;
  // Its first tile, if the tiles of all runs are numbered as they are stored.
  int64_t tile(int64_t part, int64_t group) const;
  int64_t tiles() const;
  // The position of a group's first element.
  int64_t position(int64_t group) const { return column(group) * kTileLanes; }
  int64_t columns(int64_t group) const { return column(group + 1) - column(group); }
  // Values of a channel in a part.
  int64_t values_of(int64_t part) const;
  // to[i] = x's first value of the channel in the part, for the positions of a group.
  template <typename T>
  void first_values(int64_t part, int64_t group, const T* x, float* to) const {
    const T* first = x + offset(part, last_ ? 0 : group);
    const int64_t width = columns(group) * kTileLanes, period = last_ ? channels : lanes_;
    int64_t lane = last_ ? position(group) % channels : 0;
    for (int64_t i = 0; i < width; ++i) {
      to[i] = first[lane];
      lane = lane + 1 == period ? 0 : lane + 1;
    }
  }
  // to[i] = values[channel], for the positions of a group; 0 for the padding of a block.
  template <typename T>
  void values_at(int64_t group, const T* values, float* to) const {
    const int64_t width = columns(group) * kTileLanes;
    int64_t lane = last_ ? position(group) % channels : 0;
    const int64_t first = last_ ? 0 : group * lanes_, period = last_ ? channels : lanes_;
    for (int64_t i = 0; i < width; ++i) {
      to[i] = first + lane < channels ? static_cast<float>(values[first + lane]) : 0.0f;
      lane = lane + 1 == period ? 0 : lane + 1;
    }
  }
  // The first element of a channel in a part.
  int64_t first_of(int64_t part, int64_t channel) const {
    return last_ ? offset(part, 0) + channel : offset(part, channel / lanes_) + channel % lanes_;
  }
  // Calls body(position) for the positions of a channel.
  template <typename Body>
  void for_each_position(int64_t channel, Body body) const {
    if (last_) {
      for (int64_t p = channel; p < positions; p += channels) body(p);
      return;
    }
    const int64_t first = channel / lanes_ * kTileLanes;
    for (int64_t l = channel % lanes_; l < kTileLanes; l += lanes_) body(first + l);
  }
  // Doubles for two sums per position of each part.
  int64_t sums() const { return 2 * parts * positions; }
  // The first or second (which: 0 or 1) sums of a part.
  int64_t sums_of(int64_t part, int which) const { return (2 * part + which) * positions; }
  bool are_pieces() const { return last_; }

 private:
  // The group's first of the `positions / kTileLanes` columns.
  int64_t column(int64_t group) const {
    return last_ ? positions / kTileLanes * group / groups : group;
  }

  bool last_;
  int64_t lanes_;   // channels of a block
  int64_t length_;  // elements per run, or per whole piece if last_
  int64_t part_stride_, group_stride_;
  int64_t elements_;  // in all parts, if last_
};

// Runs first(group, part) on all runs, then settle(begin, end) for ranges of channels, then
// last(group, part). If the images have `large` bytes, one thread processes one group after
// another, while its memory is in the cache; otherwise, and with channels last, memory is traversed
// sequentially. The results do not depend on the number of threads.
inline constexpr size_t kLarge = size_t{32} << 20;  // below this, sequential access is faster
template <typename First, typename Settle, typename Last>
void for_each_group(const ChannelRuns& runs, size_t element_size, size_t large, First first,
                    Settle settle, Last last) {
  const auto settle_range = [&](int64_t range) {
    settle(range * runs.settled, std::min((range + 1) * runs.settled, runs.channels));
  };
  const int64_t ranges = (runs.channels + runs.settled - 1) / runs.settled;
  const size_t bytes = static_cast<size_t>(runs.tiles() * kTileLanes) * element_size;
  if (!runs.are_pieces() && runs.groups >= 2 * omp_get_max_threads() && bytes >= large) {
#pragma omp parallel for
    for (int64_t group = 0; group < runs.groups; ++group) {
      for (int64_t part = 0; part < runs.parts; ++part) first(group, part);
      settle_range(group);
      for (int64_t part = 0; part < runs.parts; ++part) last(group, part);
    }
    return;
  }
#pragma omp parallel for collapse(2)
  for (int64_t part = 0; part < runs.parts; ++part) {
    for (int64_t group = 0; group < runs.groups; ++group) first(group, part);
  }
#pragma omp parallel for
  for (int64_t range = 0; range < ranges; ++range) settle_range(range);
#pragma omp parallel for collapse(2)
  for (int64_t part = 0; part < runs.parts; ++part) {
    for (int64_t group = 0; group < runs.groups; ++group) last(group, part);
  }
}

}  // namespace fleet::cpu
