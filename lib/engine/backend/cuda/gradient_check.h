// The gradients that a check over all of them reads, in chunks, and the check of a chunk for
// infinities and NaNs. For .cu files.
#pragma once

#include <vector>

#include "backend/cuda/tables.h"
#include "tensor/dtype.h"

namespace fleet::cuda {

struct Gradient {
  const void* data;
  DType dtype;
};

// On the device as long as a copy of this object lives.
class GradientTable {
 public:
  // For inputs[first], inputs[first + 1], ...: float32 or a 16-bit type.
  GradientTable(KernelContext& context, size_t first)
      : GradientTable(context.device, list(context, first)) {}

  int32_t count() const { return static_cast<int32_t>(gradients_.size()); }
  int64_t chunk_count() const { return chunks_.size(); }
  const Chunk* chunks() const { return chunks_.data(); }  // Chunk::tensor is the gradient's index
  const Gradient* gradients() const { return gradients_.data(); }

 private:
  struct Lists {
    std::vector<Chunk> chunks;
    std::vector<Gradient> gradients;
  };
  GradientTable(Device& device, const Lists& lists)
      : chunks_(device, lists.chunks), gradients_(device, lists.gradients) {}

  static Lists list(const KernelContext& context, size_t first) {
    Lists lists;
    for (size_t i = first; i < context.inputs.size(); ++i) {
      const Argument& gradient = context.inputs[i];
      FLEET_CHECK(is_floating(gradient.dtype) && gradient.dtype != DType::kFloat64,
                  "no such gradient");
      append_chunks(lists.chunks, static_cast<int32_t>(i - first), gradient.layout.elements());
      lists.gradients.push_back({gradient.data, gradient.dtype});
    }
    return lists;
  }

  Table<Chunk> chunks_;
  Table<Gradient> gradients_;
};

// Reads each input in its own layout: padding is zero.
inline void keep_input_layouts(LayoutQuery& query) {
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.input(i) && !query.input(i)->is_opaque()) query.need(i, *query.input(i));
  }
}

// Infinities and NaNs have all exponent bits set.
template <typename Word, uint32_t exponent>
__device__ bool is_special(Word word) {
  return (word & exponent) == exponent;
}

// Whether a special value is among the elements that this thread of the block checks.
template <typename Word, uint32_t exponent>
__device__ bool any_special_word(const Word* words, int64_t count) {
  constexpr int kWide = 16 / static_cast<int>(sizeof(Word));
  const int64_t whole = count / kWide * kWide;
  bool found = false;
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kWide; i < whole; i += kBlock * kWide) {
    const auto pack = load_pack<kWide>(words, i);
#pragma unroll
    for (int k = 0; k < kWide; ++k) found = found || is_special<Word, exponent>(pack.at[k]);
  }
  for (int64_t i = whole + threadIdx.x; i < count; i += kBlock) {
    found = found || is_special<Word, exponent>(words[i]);
  }
  return found;
}

// Like the above, for float32, float16 or bfloat16, from element `begin` on.
__device__ inline bool any_special(const void* data, DType dtype, int64_t begin, int64_t count) {
  switch (dtype) {
    case DType::kFloat16:
      return any_special_word<uint16_t, kFloat16Exponent>(
          static_cast<const uint16_t*>(data) + begin, count);
    case DType::kBFloat16:
      return any_special_word<uint16_t, kBFloat16Exponent>(
          static_cast<const uint16_t*>(data) + begin, count);
    default:
      return any_special_word<uint32_t, kFloat32Exponent>(
          static_cast<const uint32_t*>(data) + begin, count);
  }
}

}  // namespace fleet::cuda
