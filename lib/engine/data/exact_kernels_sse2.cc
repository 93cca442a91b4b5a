// For every x86-64: as for AVX2, a weight is cut into two numbers of 16 bits, whose products with
// pairs of pixels are summed apart.
#include "data/exact_kernels.h"

#if defined(__x86_64__)

#include <emmintrin.h>

namespace fleet::data {
namespace {

constexpr int kLowPartBits = 15, kLowPart = (1 << kLowPartBits) - 1;
constexpr int kMostRowPairs = 128;  // more are rare, and combined one by one

int low_parts(int32_t first, int32_t second) {
  return (first & kLowPart) | (second & kLowPart) << 16;
}

int high_parts(int32_t first, int32_t second) {
  return (first >> kLowPartBits & 0xffff) | (second >> kLowPartBits) * 65536;
}

// For each output and 2 taps 32 bytes: the low parts of both for each channel, then the high ones.
void pack_sse2(const ExactWeights& from, std::vector<WeightBlock>* packed) {
  const size_t pairs = from.weights.size() / 2;
  packed->resize((pairs + 1) / 2);
  const int32_t* weight = from.weights.data();
  auto* to = reinterpret_cast<__m128i*>(packed->data());
  for (size_t i = 0; i < pairs; ++i, weight += 2, to += 2) {
    to[0] = _mm_set1_epi32(low_parts(weight[0], weight[1]));
    to[1] = _mm_set1_epi32(high_parts(weight[0], weight[1]));
  }
}

__m128i rounded_sum(__m128i low, __m128i high) {
  const __m128i half = _mm_set1_epi32(1 << (kExactBits - 1));
  const __m128i sum = _mm_add_epi32(_mm_add_epi32(low, half), _mm_slli_epi32(high, kLowPartBits));
  return _mm_srai_epi32(sum, kExactBits);
}

__m128i sixteen_bytes(const uint8_t* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// kPairs of taps; 0: as many as `pairs`.
template <int kPairs>
void filter_pairs_sse2(const uint8_t* row, const int* from, const WeightBlock* packed, int pairs,
                       int outputs, uint8_t* to) {
  if constexpr (kPairs > 0) pairs = kPairs;
  const __m128i zero = _mm_setzero_si128();
  const auto* weights = reinterpret_cast<const __m128i*>(packed);
  for (int x = 0; x < outputs; x += 4) {
    __m128i sums[4];
    for (int j = 0; j < 4; ++j) {
      const uint8_t* p = row + ptrdiff_t{4} * from[x + j];
      __m128i low = zero, high = zero;
      // `two`: two taps of each channel, side by side.
      const auto add = [&](__m128i two) __attribute__((always_inline)) {
        const __m128i words = _mm_unpacklo_epi8(two, zero);
        low = _mm_add_epi32(low, _mm_madd_epi16(words, weights[0]));
        high = _mm_add_epi32(high, _mm_madd_epi16(words, weights[1]));
        weights += 2;
      };
      int t = 0;
      for (; t + 2 <= pairs; t += 2, p += 16) {
        const __m128i pixels = sixteen_bytes(p), next = _mm_srli_si128(pixels, 4);
        add(_mm_unpacklo_epi8(pixels, next));
        add(_mm_unpackhi_epi8(pixels, next));
      }
      if (t < pairs) {
        const __m128i pixels = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
        add(_mm_unpacklo_epi8(pixels, _mm_srli_si128(pixels, 4)));
      }
      sums[j] = rounded_sum(low, high);
    }
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(to + ptrdiff_t{4} * x),
        _mm_packus_epi16(_mm_packs_epi32(sums[0], sums[1]), _mm_packs_epi32(sums[2], sums[3])));
  }
}

void filter_rgbx_sse2(const uint8_t* row, const int* from, const WeightBlock* packed, int taps,
                      int outputs, uint8_t* to) {
  switch (taps) {
    case 2:
      return filter_pairs_sse2<1>(row, from, packed, 1, outputs, to);
    case 4:
      return filter_pairs_sse2<2>(row, from, packed, 2, outputs, to);
    case 6:
      return filter_pairs_sse2<3>(row, from, packed, 3, outputs, to);
    default:
      return filter_pairs_sse2<0>(row, from, packed, taps / 2, outputs, to);
  }
}

// The weights of a pair of rows, for each of 4 values.
struct RowPair {
  const uint8_t *first, *second;
  __m128i low, high;
};

template <int kPairs>
size_t combine_pairs_sse2(const RowPair* rows, int pairs, size_t bytes, uint8_t* to) {
  constexpr size_t kPiece = 16;
  if constexpr (kPairs > 0) pairs = kPairs;
  const __m128i zero = _mm_setzero_si128();
  size_t i = 0;
  for (; i + kPiece <= bytes; i += kPiece) {
    __m128i low[4] = {zero, zero, zero, zero}, high[4] = {zero, zero, zero, zero};
    for (int t = 0; t < pairs; ++t) {
      const __m128i a = sixteen_bytes(rows[t].first + i), b = sixteen_bytes(rows[t].second + i);
      const __m128i both[2] = {_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)};
      for (int k = 0; k < 4; ++k) {
        const __m128i words = k % 2 == 0 ? _mm_unpacklo_epi8(both[k / 2], zero)
                                         : _mm_unpackhi_epi8(both[k / 2], zero);
        low[k] = _mm_add_epi32(low[k], _mm_madd_epi16(words, rows[t].low));
        high[k] = _mm_add_epi32(high[k], _mm_madd_epi16(words, rows[t].high));
      }
    }
    const __m128i words[2] = {
        _mm_packs_epi32(rounded_sum(low[0], high[0]), rounded_sum(low[1], high[1])),
        _mm_packs_epi32(rounded_sum(low[2], high[2]), rounded_sum(low[3], high[3]))};
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), _mm_packus_epi16(words[0], words[1]));
  }
  return i;
}

void combine_sse2(const uint8_t* const* rows, const int32_t* weights, int taps, size_t bytes,
                  uint8_t* to) {
  const int pairs = (taps + 1) / 2;
  if (pairs > kMostRowPairs) return combine_exactly(rows, weights, taps, 0, bytes, to);
  RowPair pair[kMostRowPairs];
  for (int t = 0; t < taps; t += 2) {
    const bool two = t + 1 < taps;
    const int32_t second = two ? weights[t + 1] : 0;
    pair[t / 2] = {.first = rows[t],
                   .second = rows[two ? t + 1 : t],
                   .low = _mm_set1_epi32(low_parts(weights[t], second)),
                   .high = _mm_set1_epi32(high_parts(weights[t], second))};
  }
  const size_t done = pairs == 1   ? combine_pairs_sse2<1>(pair, 1, bytes, to)
                      : pairs == 2 ? combine_pairs_sse2<2>(pair, 2, bytes, to)
                                   : combine_pairs_sse2<0>(pair, pairs, bytes, to);
  combine_exactly(rows, weights, taps, done, bytes, to);
}

void spread_sse2(const uint8_t* row, int count, const float* scale, const float* bias,
                 ptrdiff_t plane, float* to) {
  spread_rgbx_inline(row, count, scale, bias, plane, to);
}

}  // namespace

void add_sse2_kernels(std::vector<ExactKernels>* all) {
  all->push_back({"baseline", 2, pack_sse2, filter_rgbx_sse2, combine_sse2, spread_sse2});
}

}  // namespace fleet::data

#else

namespace fleet::data {
void add_sse2_kernels(std::vector<ExactKernels>*) {}
}  // namespace fleet::data

#endif
