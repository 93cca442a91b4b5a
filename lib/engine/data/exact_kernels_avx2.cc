// A weight is cut into two numbers of 16 bits, whose products with pairs of pixels are summed
// apart.
#include "data/exact_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstdlib>
#include <cstring>

#define FLEET_AVX2 [[gnu::target("avx2")]]

namespace fleet::data {
namespace {

constexpr int kLowBits = 15, kLowMask = (1 << kLowBits) - 1;
constexpr int kMostPairs = 128;  // pairs of rows; more are rare, and combined one by one

// Two blocks for two outputs and 4 taps. Of each output 16 bytes, in this order: low parts of two
// taps for each channel, those of the other two, then high parts.
FLEET_AVX2 void pack_avx2(const ExactWeights& from, std::vector<WeightBlock>* packed) {
  const size_t outputs = from.from.size(), groups = static_cast<size_t>(from.taps) / 4;
  packed->resize(outputs * groups);
  const int32_t* weight = from.weights.data();
  for (size_t x = 0; x < outputs; ++x) {
    auto* to = reinterpret_cast<__m128i*>((*packed)[x / 2 * 2 * groups].bytes) + x % 2;
    for (size_t g = 0; g < groups; ++g, to += 8) {
      for (int half = 0; half < 2; ++half, weight += 2) {
        const int low = (weight[0] & kLowMask) | (weight[1] & kLowMask) << 16;
        const int high = (weight[0] >> kLowBits & 0xffff) | (weight[1] >> kLowBits) * 65536;
        to[2 * half] = _mm_set1_epi32(low);
        to[4 + 2 * half] = _mm_set1_epi32(high);
      }
    }
  }
}

FLEET_AVX2 inline __m256i rounded(__m256i sum) {
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (kExactBits - 1))),
                           kExactBits);
}

FLEET_AVX2 inline __m128i four_of_row(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// kGroups of 4 taps; 0: as many as `groups`. Each half of a register is an output.
template <int kGroups>
FLEET_AVX2 void filter_groups_avx2(const uint8_t* row, const int* from, const WeightBlock* packed,
                                   int groups, int outputs, uint8_t* to) {
  if constexpr (kGroups > 0) groups = kGroups;
  constexpr char kNone = -1;
  // Two taps of each channel, widened to 16 bits.
  const __m256i first = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      0, kNone, 4, kNone, 1, kNone, 5, kNone, 2, kNone, 6, kNone, 3, kNone, 7, kNone));
  const __m256i second = _mm256_broadcastsi128_si256(_mm_setr_epi8(
      8, kNone, 12, kNone, 9, kNone, 13, kNone, 10, kNone, 14, kNone, 11, kNone, 15, kNone));
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
  const auto* weights = reinterpret_cast<const __m256i*>(packed);
  for (int x = 0; x < outputs; x += 4) {
    __m256i sums[2];
    for (int j = 0; j < 2; ++j) {
      const uint8_t *p = row + ptrdiff_t{4} * from[x + 2 * j],
                    *q = row + ptrdiff_t{4} * from[x + 2 * j + 1];
      __m256i low = _mm256_setzero_si256(), high = low;
      for (int g = 0; g < groups; ++g, weights += 4) {
        const __m256i pixels =
            _mm256_inserti128_si256(_mm256_castsi128_si256(four_of_row(p + ptrdiff_t{16} * g)),
                                    four_of_row(q + ptrdiff_t{16} * g), 1);
        const __m256i a = _mm256_shuffle_epi8(pixels, first);
        const __m256i b = _mm256_shuffle_epi8(pixels, second);
        low = _mm256_add_epi32(low, _mm256_add_epi32(_mm256_madd_epi16(a, weights[0]),
                                                     _mm256_madd_epi16(b, weights[1])));
        high = _mm256_add_epi32(high, _mm256_add_epi32(_mm256_madd_epi16(a, weights[2]),
                                                       _mm256_madd_epi16(b, weights[3])));
      }
      sums[j] = rounded(_mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits)));
    }
    const __m256i words = _mm256_packs_epi32(sums[0], sums[1]);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ptrdiff_t{4} * x),
                     _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, in_order)));
  }
}

FLEET_AVX2 void filter_rgbx_avx2(const uint8_t* row, const int* from, const WeightBlock* packed,
                                 int taps, int outputs, uint8_t* to) {
  if (taps == 4) return filter_groups_avx2<1>(row, from, packed, 1, outputs, to);
  if (taps == 8) return filter_groups_avx2<2>(row, from, packed, 2, outputs, to);
  filter_groups_avx2<0>(row, from, packed, taps / 4, outputs, to);
}

// Two rows, and their weights = low + 2^16 high.
struct PairOfRows {
  const uint8_t *first, *second;
  __m256i low, high;
};

// False if sums of the high parts could leave 16 bits.
FLEET_AVX2 bool pair_rows(const uint8_t* const* rows, const int32_t* weights, int taps,
                          PairOfRows* pairs) {
  constexpr int kMostHigh = 128;  // times 255 is below 2^15
  int sum = 0;
  for (int t = 0; t < taps; t += 2) {
    int16_t low[2] = {};
    int8_t high[2] = {};
    const int there = t + 1 < taps ? 2 : 1;
    for (int i = 0; i < there; ++i) {
      low[i] = static_cast<int16_t>(weights[t + i] & 0xffff);
      const int32_t rest = (weights[t + i] - low[i]) / 65536;
      sum += std::abs(rest);
      if (sum > kMostHigh || rest == kMostHigh) return false;
      high[i] = static_cast<int8_t>(rest);
    }
    int32_t two_low = 0;
    int16_t two_high = 0;
    std::memcpy(&two_low, low, sizeof two_low);
    std::memcpy(&two_high, high, sizeof two_high);
    pairs[t / 2] = {.first = rows[t],
                    .second = rows[t + there - 1],
                    .low = _mm256_set1_epi32(two_low),
                    .high = _mm256_set1_epi16(two_high)};
  }
  return true;
}

// kPairs of rows; 0: as many as `count`. Returns how many bytes are done.
template <int kPairs>
FLEET_AVX2 size_t combine_pairs_avx2(const PairOfRows* pairs, int count, size_t bytes,
                                     uint8_t* to) {
  constexpr size_t kPiece = 32;
  if constexpr (kPairs > 0) count = kPairs;
  const __m256i zero = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + kPiece <= bytes; i += kPiece) {
    __m256i low[4] = {zero, zero, zero, zero}, high[2] = {zero, zero};
    for (int t = 0; t < count; ++t) {
      const PairOfRows& pair = pairs[t];
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair.first + i));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair.second + i));
      const __m256i both[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
      for (int k = 0; k < 2; ++k) {
        high[k] = _mm256_add_epi16(high[k], _mm256_maddubs_epi16(both[k], pair.high));
        low[2 * k] = _mm256_add_epi32(
            low[2 * k], _mm256_madd_epi16(_mm256_unpacklo_epi8(both[k], zero), pair.low));
        low[2 * k + 1] = _mm256_add_epi32(
            low[2 * k + 1], _mm256_madd_epi16(_mm256_unpackhi_epi8(both[k], zero), pair.low));
      }
    }
    __m256i words[2];
    for (int k = 0; k < 2; ++k) {
      words[k] = _mm256_packs_epi32(
          rounded(_mm256_add_epi32(low[2 * k], _mm256_unpacklo_epi16(zero, high[k]))),
          rounded(_mm256_add_epi32(low[2 * k + 1], _mm256_unpackhi_epi16(zero, high[k]))));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_packus_epi16(words[0], words[1]));
  }
  return i;
}

FLEET_AVX2 void combine_avx2(const uint8_t* const* rows, const int32_t* weights, int taps,
                             size_t bytes, uint8_t* to) {
  const int count = (taps + 1) / 2;
  PairOfRows pairs[kMostPairs];
  if (count > kMostPairs || !pair_rows(rows, weights, taps, pairs)) {
    return combine_exactly(rows, weights, taps, 0, bytes, to);
  }
  const size_t done = count == 1   ? combine_pairs_avx2<1>(pairs, count, bytes, to)
                      : count == 2 ? combine_pairs_avx2<2>(pairs, count, bytes, to)
                                   : combine_pairs_avx2<0>(pairs, count, bytes, to);
  combine_exactly(rows, weights, taps, done, bytes, to);
}

FLEET_AVX2 void spread_avx2(const uint8_t* row, int count, const float* scale, const float* bias,
                            ptrdiff_t plane, float* to) {
  spread_rgbx_inline(row, count, scale, bias, plane, to);
}

}  // namespace

void add_avx2_kernels(std::vector<ExactKernels>* all) {
  all->push_back({"avx2", 4, pack_avx2, filter_rgbx_avx2, combine_avx2, spread_avx2});
}

}  // namespace fleet::data

#else

namespace fleet::data {
void add_avx2_kernels(std::vector<ExactKernels>*) {}
}  // namespace fleet::data

#endif
