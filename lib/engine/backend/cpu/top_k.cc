#include "backend/cpu/top_k.h"

#include <algorithm>
#include <array>
#include <bit>

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {
namespace {

// A digit of a magnitude's 31 bits.
struct Digit {
  int shift, bits;
};
constexpr Digit kDigits[] = {{20, 11}, {10, 10}, {0, 10}};
using Histogram = std::array<int64_t, 1 << 11>;

uint32_t magnitude(float x) { return std::bit_cast<uint32_t>(x) & kMagnitude; }

// Counts the digit of a number that begins with the digits before it.
FLEET_INLINE void count_digit(Histogram& counts, const Digit& digit, uint32_t before,
                              uint32_t number) {
  const uint32_t prefix = number >> digit.shift;
  if (prefix >> digit.bits == before) ++counts[prefix & ((1u << digit.bits) - 1)];
}

// The digit of the k-th largest of the counted values; k becomes its rank among those with that
// digit.
uint32_t digit_of_kth(const Histogram& counts, const Digit& digit, int64_t& k) {
  int64_t at = (1 << digit.bits) - 1;
  for (; at > 0 && k > counts[at]; --at) k -= counts[at];
  return static_cast<uint32_t>(at);
}

uint32_t kth_largest(const uint32_t* numbers, int64_t count, int64_t k) {
  uint32_t prefix = 0;
  for (const Digit& digit : kDigits) {
    Histogram counts{};
    for (int64_t i = 0; i < count; ++i) count_digit(counts, digit, prefix, numbers[i]);
    prefix = prefix << digit.bits | digit_of_kth(counts, digit, k);
  }
  return prefix;
}

FLEET_SIMD void add_counts(const float* x, int64_t count, uint32_t bound, int64_t& above,
                           int64_t& equal) {
  int32_t more = 0, same = 0;
#pragma omp simd reduction(+ : more, same)
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t number = std::bit_cast<uint32_t>(x[i]) & kMagnitude;
    more += number > bound;
    same += number == bound;
  }
  above += more;
  equal += same;
}

}  // namespace

TopK::TopK(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  int64_t tiles = 0, listed = 0;
  for (const Tensor& tensor : tensors_) {
    State state;
    state.tiles = tiles;
    state.listed = listed;
    state.most = std::min(tensor.count, 2 * tensor.k + 1024);
    state.pieces = static_cast<int64_t>(pieces_.size());
    for (int64_t begin = 0; begin < tensor.count; begin += kChunk) {
      pieces_.push_back({.tensor = static_cast<int>(states_.size()),
                         .begin = begin,
                         .end = std::min(tensor.count, begin + kChunk)});
    }
    state.last_piece = static_cast<int64_t>(pieces_.size());
    tiles += (tensor.count + kTile - 1) / kTile;
    listed += state.most;
    states_.push_back(state);
  }
  counts_.resize(pieces_.size());
  maxima_.resize(tiles);
  listed_places_.resize(listed);
  listed_magnitudes_.resize(listed);
}

// Calls use(begin, end) for a piece's tiles that reach `least`. Prefetches all of them before
// reading the first, since they are few among many.
template <typename Use>
void TopK::visit_tiles(const Piece& piece, uint32_t least, const Use& use) const {
  const float* x = tensors_[piece.tensor].x;
  const uint32_t* maxima = maxima_.data() + states_[piece.tensor].tiles;
  std::array<int64_t, kChunk / kTile> tiles;
  int found = 0;
  for (int64_t tile = piece.begin; tile < piece.end; tile += kTile) {
    if (maxima[tile / kTile] < least) continue;
    tiles[found++] = tile;
    for (int64_t i = 0; i < kTile; i += 16) __builtin_prefetch(x + tile + i);
  }
  for (int i = 0; i < found; ++i) use(tiles[i], std::min(piece.end, tiles[i] + kTile));
}

// Calls use(place, magnitude) for their elements.
template <typename Use>
void TopK::visit(const Piece& piece, uint32_t least, const Use& use) const {
  const float* x = tensors_[piece.tensor].x;
  visit_tiles(piece, least, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) use(i, magnitude(x[i]));
  });
}

void TopK::bound_by_tiles(int tensor) {
  const int64_t tiles = (tensors_[tensor].count + kTile - 1) / kTile, k = tensors_[tensor].k;
  states_[tensor].bound = tiles >= k ? kth_largest(maxima(tensor), tiles, k) : 0;
}

void TopK::count_pieces(int64_t begin, int64_t end) {
#pragma omp parallel for schedule(dynamic, 4) if (end - begin > 1)
  for (int64_t i = begin; i < end; ++i) {
    const Piece& piece = pieces_[i];
    const float* x = tensors_[piece.tensor].x;
    const uint32_t bound = states_[piece.tensor].bound;
    Counts counts;
    visit_tiles(piece, bound, [&](int64_t begin, int64_t end) {
      add_counts(x + begin, end - begin, bound, counts.above, counts.equal);
    });
    counts_[i] = counts;
  }
}

// Replaces the counts of each piece by those of all pieces before it.
void TopK::sum_counts(int tensor) {
  State& state = states_[tensor];
  state.counts = {};
  for (int64_t i = state.pieces; i < state.last_piece; ++i) {
    const Counts own = counts_[i];
    counts_[i] = state.counts;
    state.counts.above += own.above;
    state.counts.equal += own.equal;
  }
}

// Raises the bound digit by digit towards the k-th largest magnitude, until the list can hold all
// elements above it.
void TopK::raise_bound(int tensor) {
  State& state = states_[tensor];
  const auto count = [&] {
    count_pieces(state.pieces, state.last_piece);
    sum_counts(tensor);
    return state.counts.above;
  };
  int64_t k = tensors_[tensor].k;
  uint32_t prefix = 0;
  for (const Digit& digit : kDigits) {
    Histogram total{};
    const uint32_t least = prefix << (digit.shift + digit.bits);
#pragma omp parallel if (state.last_piece - state.pieces > 1)
    {
      Histogram own{};
#pragma omp for nowait
      for (int64_t i = state.pieces; i < state.last_piece; ++i) {
        visit(pieces_[i], least,
              [&](int64_t, uint32_t number) { count_digit(own, digit, prefix, number); });
      }
#pragma omp critical(fleet_largest)
      for (size_t i = 0; i < own.size(); ++i) total[i] += own[i];
    }
    prefix = prefix << digit.bits | digit_of_kth(total, digit, k);
    const uint32_t first = prefix << digit.shift;  // at least k elements reach it
    state.bound = first == 0 ? 0 : first - 1;
    if (count() <= state.most) return;
  }
  state.bound = prefix;
  count();
}

// For a tensor with fewer than k elements above the bound, writes the positions; for others, the
// list.
void TopK::list_piece(int64_t at) {
  const Piece& piece = pieces_[at];
  const State& state = states_[piece.tensor];
  const Tensor& tensor = tensors_[piece.tensor];
  const uint32_t bound = state.bound;
  const Counts before = counts_[at];
  if (state.counts.above < tensor.k) {
    // Number of elements equal to the bound that are taken.
    const int64_t equals = tensor.k - state.counts.above;
    int64_t equal = before.equal;
    int32_t* to = tensor.places + before.above + std::min(equal, equals);
    visit(piece, bound, [&](int64_t place, uint32_t number) {
      if (number > bound || (number == bound && equal++ < equals)) {
        *to++ = static_cast<int32_t>(place);
      }
    });
    return;
  }
  int64_t to = state.listed + before.above;
  visit(piece, bound + 1, [&](int64_t place, uint32_t number) {
    if (number <= bound) return;
    listed_places_[to] = static_cast<int32_t>(place);
    listed_magnitudes_[to++] = number;
  });
}

void TopK::choose_from_list(int tensor) {
  const State& state = states_[tensor];
  const int64_t k = tensors_[tensor].k, listed = state.counts.above;
  if (listed < k) return;
  const int32_t* places = listed_places_.data() + state.listed;
  const uint32_t* magnitudes = listed_magnitudes_.data() + state.listed;
  const uint32_t kth = kth_largest(magnitudes, listed, k);
  int64_t equals = k;
  for (int64_t i = 0; i < listed; ++i) equals -= magnitudes[i] > kth;
  int32_t* to = tensors_[tensor].places;
  for (int64_t i = 0; i < listed; ++i) {
    if (magnitudes[i] > kth || (magnitudes[i] == kth && equals-- > 0)) *to++ = places[i];
  }
}

void TopK::select() {
  const int tensors = static_cast<int>(tensors_.size());
  const auto pieces = static_cast<int64_t>(pieces_.size());
#pragma omp parallel for schedule(dynamic, 1) if (pieces > tensors)
  for (int i = 0; i < tensors; ++i) bound_by_tiles(i);
  count_pieces(0, pieces);
  for (int i = 0; i < tensors; ++i) {
    sum_counts(i);
    if (states_[i].counts.above > states_[i].most) raise_bound(i);
  }
#pragma omp parallel for schedule(dynamic, 4) if (pieces > 1)
  for (int64_t i = 0; i < pieces; ++i) list_piece(i);
#pragma omp parallel for schedule(dynamic, 1) if (pieces > tensors)
  for (int i = 0; i < tensors; ++i) choose_from_list(i);
}

}  // namespace fleet::cpu
