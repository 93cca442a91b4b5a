#include "data/exact_kernels.h"

#include <algorithm>
#include <cstring>

#include "base/cpu.h"

namespace fleet::data {
namespace {

constexpr int32_t kHalf = 1 << (kExactBits - 1);

uint8_t clamped(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kExactBits, 0, 255)); }

void pack_plainly(const ExactWeights& weights, std::vector<WeightBlock>* packed) {
  const size_t bytes = weights.weights.size() * sizeof(int32_t);
  packed->resize((bytes + sizeof(WeightBlock) - 1) / sizeof(WeightBlock));
  if (bytes > 0) std::memcpy(packed->data(), weights.weights.data(), bytes);
}

void filter_rgbx_plainly(const uint8_t* row, const int* from, const WeightBlock* packed, int taps,
                         int outputs, uint8_t* to) {
  const auto* weights = reinterpret_cast<const int32_t*>(packed);
  for (int x = 0; x < outputs; ++x, weights += taps) {
    const uint8_t* p = row + ptrdiff_t{4} * from[x];
    int32_t sums[4] = {kHalf, kHalf, kHalf, kHalf};
    for (int t = 0; t < taps; ++t) {
      for (int c = 0; c < 4; ++c) sums[c] += p[4 * t + c] * weights[t];
    }
    for (int c = 0; c < 4; ++c) to[4 * x + c] = clamped(sums[c]);
  }
}

void combine_plainly(const uint8_t* const* rows, const int32_t* weights, int taps, size_t bytes,
                     uint8_t* to) {
  combine_exactly(rows, weights, taps, 0, bytes, to);
}

void spread_plainly(const uint8_t* row, int count, const float* scale, const float* bias,
                    ptrdiff_t plane, float* to) {
  spread_rgbx_inline(row, count, scale, bias, plane, to);
}

}  // namespace

void filter_grey_exactly(const uint8_t* row, const ExactWeights& weights, int outputs,
                         uint8_t* to) {
  const int32_t* weight = weights.weights.data();
  for (int x = 0; x < outputs; ++x, weight += weights.taps) {
    const uint8_t* p = row + weights.from[x];
    int32_t sum = kHalf;
    for (int t = 0; t < weights.count[x]; ++t) sum += p[t] * weight[t];
    to[x] = clamped(sum);
  }
}

void combine_exactly(const uint8_t* const* rows, const int32_t* weights, int taps, size_t from,
                     size_t end, uint8_t* to) {
  constexpr size_t kPiece = 64;
  for (; from < end; from += kPiece) {
    int32_t sums[kPiece];
    const size_t count = std::min(kPiece, end - from);
    std::fill_n(sums, kPiece, kHalf);
    for (int t = 0; t < taps; ++t) {
      const uint8_t* row = rows[t] + from;
      const int32_t weight = weights[t];
      for (size_t i = 0; i < count; ++i) sums[i] += row[i] * weight;
    }
    for (size_t i = 0; i < count; ++i) to[from + i] = clamped(sums[i]);
  }
}

const std::vector<ExactKernels>& exact_kernels() {
  static const std::vector<ExactKernels> sets = [] {
    std::vector<ExactKernels> all;
    if (FLEET_X86_HAS("avx512bw") && FLEET_X86_HAS("avx512vl") && FLEET_X86_HAS("avx512vnni")) {
      add_avx512_kernels(&all);
    }
    if (FLEET_X86_HAS("avx2")) add_avx2_kernels(&all);
    add_sse2_kernels(&all);
    all.push_back({"plain", 1, pack_plainly, filter_rgbx_plainly, combine_plainly, spread_plainly});
    return all;
  }();
  return sets;
}

std::vector<std::string> exact_instruction_sets() {
  std::vector<std::string> names;
  for (const ExactKernels& set : exact_kernels()) names.emplace_back(set.name);
  return names;
}

}  // namespace fleet::data
