// A weight is cut into three signed bytes, whose products with pixels VNNI sums four at a time.
#include "data/exact_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#define FLEET_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni")]]

namespace fleet::data {
namespace {

constexpr int kMostGroups = 64;  // of 4 rows; more are rare, and combined one by one

// weight = digits[0] + 2^8 digits[1] + 2^16 digits[2]. Weights of a filter are below 1.5 * 2^22.
void digits_of(int32_t weight, int8_t digits[3]) {
  for (int d = 0; d < 3; ++d) {
    digits[d] = static_cast<int8_t>(weight & 0xff);
    weight = (weight - digits[d]) >> 8;
  }
}

// A block for 4 outputs and 4 taps: for each digit and output, that of the taps.
FLEET_AVX512 void pack_avx512(const ExactWeights& from, std::vector<WeightBlock>* packed) {
  const int outputs = static_cast<int>(from.from.size()), groups = from.taps / 4;
  packed->resize(size_t(outputs / 4) * groups);
  // Adding half a digit carries what a negative digit borrows from the next.
  const __m128i half = _mm_set1_epi32(0x8080);
  const __m128i by_digit = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const auto* weights = reinterpret_cast<const __m128i*>(from.weights.data());
  for (int x = 0; x < outputs; ++x) {
    for (int g = 0; g < groups; ++g) {
      const __m128i raised = _mm_add_epi32(_mm_loadu_si128(weights++), half);
      const __m128i digits = _mm_shuffle_epi8(_mm_xor_si128(raised, half), by_digit);
      auto* to = reinterpret_cast<int32_t*>((*packed)[size_t(x / 4) * groups + g].bytes);
      to[x % 4] = _mm_extract_epi32(digits, 0);
      to[4 + x % 4] = _mm_extract_epi32(digits, 1);
      to[8 + x % 4] = _mm_extract_epi32(digits, 2);
    }
  }
}

FLEET_AVX512 inline __m512i sum_of(__m512i a, __m512i b, __m512i c) {
  const __m512i sum =
      _mm512_add_epi32(_mm512_add_epi32(a, _mm512_set1_epi32(1 << (kExactBits - 1))),
                       _mm512_add_epi32(_mm512_slli_epi32(b, 8), _mm512_slli_epi32(c, 16)));
  return _mm512_srai_epi32(sum, kExactBits);
}

FLEET_AVX512 inline __m128i four_pixels(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

FLEET_AVX512 void filter_rgbx_avx512(const uint8_t* row, const int* from, const WeightBlock* packed,
                                     int taps, int outputs, uint8_t* to) {
  const __m512i outputs_of = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
  const __m512i second = _mm512_add_epi32(outputs_of, _mm512_set1_epi32(4));
  const __m512i third = _mm512_add_epi32(outputs_of, _mm512_set1_epi32(8));
  // Bytes 0 4 8 12, 1 5 9 13...: four taps of a channel side by side.
  const __m512i by_channel = _mm512_set4_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400);
  for (int x = 0; x < outputs; x += 4) {
    const uint8_t *p = row + ptrdiff_t{4} * from[x], *q = row + ptrdiff_t{4} * from[x + 1],
                  *r = row + ptrdiff_t{4} * from[x + 2], *s = row + ptrdiff_t{4} * from[x + 3];
    __m512i a = _mm512_setzero_si512(), b = a, c = a;
    for (int t = 0; t < taps; t += 4, ++packed) {
      __m512i pixels = _mm512_castsi128_si512(four_pixels(p + ptrdiff_t{4} * t));
      pixels = _mm512_inserti32x4(pixels, four_pixels(q + ptrdiff_t{4} * t), 1);
      pixels = _mm512_inserti32x4(pixels, four_pixels(r + ptrdiff_t{4} * t), 2);
      pixels = _mm512_inserti32x4(pixels, four_pixels(s + ptrdiff_t{4} * t), 3);
      pixels = _mm512_shuffle_epi8(pixels, by_channel);
      const __m512i weights = _mm512_load_si512(packed);
      a = _mm512_dpbusd_epi32(a, pixels, _mm512_permutexvar_epi32(outputs_of, weights));
      b = _mm512_dpbusd_epi32(b, pixels, _mm512_permutexvar_epi32(second, weights));
      c = _mm512_dpbusd_epi32(c, pixels, _mm512_permutexvar_epi32(third, weights));
    }
    const __m512i sum = _mm512_max_epi32(sum_of(a, b, c), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + ptrdiff_t{4} * x),
                     _mm512_cvtusepi32_epi8(sum));
  }
}

FLEET_AVX512 void combine_avx512(const uint8_t* const* rows, const int32_t* weights, int taps,
                                 size_t bytes, uint8_t* to) {
  constexpr size_t kPiece = 64;
  const int groups = (taps + 3) / 4;
  if (groups > kMostGroups) return combine_exactly(rows, weights, taps, 0, bytes, to);
  int8_t digits[kMostGroups][3][4] = {};
  const uint8_t* at[4 * kMostGroups];
  for (int t = 0; t < 4 * groups; ++t) {
    at[t] = rows[t < taps ? t : 0];
    int8_t digit[3] = {};
    if (t < taps) digits_of(weights[t], digit);
    for (int d = 0; d < 3; ++d) digits[t / 4][d][t % 4] = digit[d];
  }
  size_t i = 0;
  for (; i + kPiece <= bytes; i += kPiece) {
    __m512i a[4], b[4], c[4];
    for (int k = 0; k < 4; ++k) a[k] = b[k] = c[k] = _mm512_setzero_si512();
    for (int g = 0; g < groups; ++g) {
      const __m512i r0 = _mm512_loadu_si512(at[4 * g] + i);
      const __m512i r1 = _mm512_loadu_si512(at[4 * g + 1] + i);
      const __m512i r2 = _mm512_loadu_si512(at[4 * g + 2] + i);
      const __m512i r3 = _mm512_loadu_si512(at[4 * g + 3] + i);
      const __m512i low = _mm512_unpacklo_epi8(r0, r1), high = _mm512_unpackhi_epi8(r0, r1);
      const __m512i low2 = _mm512_unpacklo_epi8(r2, r3), high2 = _mm512_unpackhi_epi8(r2, r3);
      const __m512i four[4] = {_mm512_unpacklo_epi16(low, low2), _mm512_unpackhi_epi16(low, low2),
                               _mm512_unpacklo_epi16(high, high2),
                               _mm512_unpackhi_epi16(high, high2)};
      int32_t packed[3];
      std::memcpy(packed, digits[g], sizeof packed);
      for (int k = 0; k < 4; ++k) {
        a[k] = _mm512_dpbusd_epi32(a[k], four[k], _mm512_set1_epi32(packed[0]));
        b[k] = _mm512_dpbusd_epi32(b[k], four[k], _mm512_set1_epi32(packed[1]));
        c[k] = _mm512_dpbusd_epi32(c[k], four[k], _mm512_set1_epi32(packed[2]));
      }
    }
    const __m512i low = _mm512_packs_epi32(sum_of(a[0], b[0], c[0]), sum_of(a[1], b[1], c[1]));
    const __m512i high = _mm512_packs_epi32(sum_of(a[2], b[2], c[2]), sum_of(a[3], b[3], c[3]));
    _mm512_storeu_si512(to + i, _mm512_packus_epi16(low, high));
  }
  combine_exactly(rows, weights, taps, i, bytes, to);
}

FLEET_AVX512 void spread_avx512(const uint8_t* row, int count, const float* scale,
                                const float* bias, ptrdiff_t plane, float* to) {
  spread_rgbx_inline(row, count, scale, bias, plane, to);
}

}  // namespace

void add_avx512_kernels(std::vector<ExactKernels>* all) {
  all->push_back(
      {"avx512_vnni", 4, pack_avx512, filter_rgbx_avx512, combine_avx512, spread_avx512});
}

}  // namespace fleet::data

#else

namespace fleet::data {
void add_avx512_kernels(std::vector<ExactKernels>*) {}
}  // namespace fleet::data

#endif
