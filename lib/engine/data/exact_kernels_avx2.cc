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

// A block for one output and 4 taps: low parts of two taps for each channel, those of the other
// two, then high parts in the same order.
FLEET_AVX2 void pack_avx2(const ExactWeights& from, std::vector<WeightBlock>* packed) {
  const size_t groups = from.weights.size() / 4;
  packed->resize(groups);
  const int32_t* weight = from.weights.data();
  for (size_t g = 0; g < groups; ++g) {
    auto* to = reinterpret_cast<__m128i*>((*packed)[g].bytes);
    for (int half = 0; half < 2; ++half, weight += 2) {
      const int low = (weight[0] & kLowMask) | (weight[1] & kLowMask) << 16;
      const int high = (weight[0] >> kLowBits & 0xffff) | (weight[1] >> kLowBits) * 65536;
      to[half] = _mm_set1_epi32(low);
      to[2 + half] = _mm_set1_epi32(high);
    }
  }
}

FLEET_AVX2 inline __m256i rounded(__m256i sum) {
  return _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << (kExactBits - 1))),
                           kExactBits);
}

// Sums of two outputs, each over both halves of its register.
FLEET_AVX2 inline __m256i two_outputs(__m256i a, __m256i b) {
  return rounded(_mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                                  _mm256_permute2x128_si256(a, b, 0x31)));
}

FLEET_AVX2 void filter_rgbx_avx2(const uint8_t* row, const int* from, const WeightBlock* packed,
                                 int taps, int outputs, uint8_t* to) {
  constexpr char kNone = -1;
  // Two taps of each channel in each half, widened to 16 bits.
  const __m256i by_channel = _mm256_setr_epi8(
      0, kNone, 4, kNone, 1, kNone, 5, kNone, 2, kNone, 6, kNone, 3, kNone, 7, kNone, 8, kNone, 12,
      kNone, 9, kNone, 13, kNone, 10, kNone, 14, kNone, 11, kNone, 15, kNone);
  const __m256i in_order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
  for (int x = 0; x < outputs; x += 4) {
    __m256i sums[4];
    for (int j = 0; j < 4; ++j) {
      const uint8_t* p = row + ptrdiff_t{4} * from[x + j];
      __m256i low = _mm256_setzero_si256(), high = low;
      for (int t = 0; t < taps; t += 4, ++packed) {
        const __m256i pixels = _mm256_shuffle_epi8(
            _mm256_broadcastsi128_si256(
                _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + ptrdiff_t{4} * t))),
            by_channel);
        const auto* weights = reinterpret_cast<const __m256i*>(packed->bytes);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, weights[0]));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, weights[1]));
      }
      sums[j] = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
    }
    const __m256i words =
        _mm256_packs_epi32(two_outputs(sums[0], sums[1]), two_outputs(sums[2], sums[3]));
    const __m256i bytes = _mm256_packus_epi16(words, words);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ptrdiff_t{4} * x),
                     _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, in_order)));
  }
}

// Two rows' weights = low + 2^16 high.
struct PairWeights {
  int16_t low[2];
  int8_t high[2];
};

// False if sums of the high parts could leave 16 bits.
bool cut_weights(const int32_t* weights, int taps, PairWeights* pairs) {
  constexpr int kMostHigh = 128;  // times 255 is below 2^15
  int sum = 0;
  for (int t = 0; t < (taps + 1) / 2 * 2; ++t) {
    const int32_t weight = t < taps ? weights[t] : 0;
    const auto low = static_cast<int16_t>(weight & 0xffff);
    const int32_t high = (weight - low) / 65536;
    sum += std::abs(high);
    if (sum > kMostHigh || high == kMostHigh) return false;
    pairs[t / 2].low[t % 2] = low;
    pairs[t / 2].high[t % 2] = static_cast<int8_t>(high);
  }
  return true;
}

FLEET_AVX2 void combine_avx2(const uint8_t* const* rows, const int32_t* weights, int taps,
                             size_t bytes, uint8_t* to) {
  constexpr size_t kPiece = 32;
  const int pairs = (taps + 1) / 2;
  PairWeights cut[kMostPairs];
  if (pairs > kMostPairs || !cut_weights(weights, taps, cut)) {
    return combine_exactly(rows, weights, taps, 0, bytes, to);
  }
  const __m256i zero = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + kPiece <= bytes; i += kPiece) {
    __m256i low[4] = {zero, zero, zero, zero}, high[2] = {zero, zero};
    for (int t = 0; t < pairs; ++t) {
      const uint8_t* other = rows[2 * t + 1 < taps ? 2 * t + 1 : 0];
      const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[2 * t] + i));
      const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(other + i));
      const __m256i both[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
      int32_t words = 0;
      int16_t two = 0;
      std::memcpy(&words, cut[t].low, sizeof words);
      std::memcpy(&two, cut[t].high, sizeof two);
      const __m256i low_weights = _mm256_set1_epi32(words), high_weights = _mm256_set1_epi16(two);
      for (int k = 0; k < 2; ++k) {
        high[k] = _mm256_add_epi16(high[k], _mm256_maddubs_epi16(both[k], high_weights));
        low[2 * k] = _mm256_add_epi32(
            low[2 * k], _mm256_madd_epi16(_mm256_unpacklo_epi8(both[k], zero), low_weights));
        low[2 * k + 1] = _mm256_add_epi32(
            low[2 * k + 1], _mm256_madd_epi16(_mm256_unpackhi_epi8(both[k], zero), low_weights));
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
  combine_exactly(rows, weights, taps, i, bytes, to);
}

}  // namespace

void add_avx2_kernels(std::vector<ExactKernels>* all) {
  all->push_back({"avx2", pack_avx2, filter_rgbx_avx2, combine_avx2});
}

}  // namespace fleet::data

#else

namespace fleet::data {
void add_avx2_kernels(std::vector<ExactKernels>*) {}
}  // namespace fleet::data

#endif
