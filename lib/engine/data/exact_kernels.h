// The inner loops of ExactResizer, by instruction set. Internal to data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/cpu.h"

namespace fleet::data {

// A sum of pixel * weight begins with half a unit, and its last 22 bits are dropped.
inline constexpr int kExactBits = 22;

// The weights of one axis, each times 2^22.
struct ExactWeights {
  int taps = 0;                  // weights per output, 0 behind its last one
  std::vector<int> from, count;  // an output's first pixel, and how many it takes
  std::vector<int32_t> weights;
};

struct alignas(64) WeightBlock {
  uint8_t bytes[64];
};

struct ExactKernels {
  const char* name;
  int taps;  // filter_rgbx() takes a multiple of these
  // Lays weights out for filter_rgbx().
  void (*pack)(const ExactWeights& weights, std::vector<WeightBlock>* packed);
  // to[4*x+c] = the sum over t < taps of row[4*(from[x]+t)+c] * weight, as 8 bits. Writes whole
  // groups of 4 outputs; `from` has as many entries.
  void (*filter_rgbx)(const uint8_t* row, const int* from, const WeightBlock* packed, int taps,
                      int outputs, uint8_t* to);
  // to[i] = the sum over t < taps of rows[t][i] * weights[t], as 8 bits.
  void (*combine)(const uint8_t* const* rows, const int32_t* weights, int taps, size_t bytes,
                  uint8_t* to);
  // to[c * plane + i] = the channel of a pixel * scale[c] + bias[c], for i < count.
  void (*spread_rgbx)(const uint8_t* row, int count, const float* scale, const float* bias,
                      ptrdiff_t plane, float* to);
};

// ExactKernels::spread_rgbx(), which a compiler vectorizes for the instruction set of its caller.
FLEET_INLINE void spread_rgbx_inline(const uint8_t* row, int count, const float* scale,
                                     const float* bias, ptrdiff_t plane, float* to) {
  for (int c = 0; c < 3; ++c, to += plane) {
    const float times = scale[c], plus = bias[c];
    for (int i = 0; i < count; ++i) {
      int32_t pixel;  // shifts are faster than a gap of four bytes
      __builtin_memcpy(&pixel, row + 4 * i, sizeof pixel);
      to[i] = static_cast<float>((pixel >> (8 * c)) & 0xff) * times + plus;
    }
  }
}

// "avx512_vnni", "avx2", "baseline" (SSE2 on x86-64), "plain": those that this CPU supports,
// fastest first.
const std::vector<ExactKernels>& exact_kernels();
std::vector<std::string> exact_instruction_sets();

// The same sums one by one, for grey rows and the ends of long ones.
void filter_grey_exactly(const uint8_t* row, const ExactWeights& weights, int outputs, uint8_t* to);
void combine_exactly(const uint8_t* const* rows, const int32_t* weights, int taps, size_t from,
                     size_t end, uint8_t* to);

// One file each, for x86-64.
void add_sse2_kernels(std::vector<ExactKernels>* all);
void add_avx2_kernels(std::vector<ExactKernels>* all);
void add_avx512_kernels(std::vector<ExactKernels>* all);

}  // namespace fleet::data
