#include "backend/cpu/optim_chunks.h"

namespace fleet {
namespace {

// Infinities and NaNs have all bits of the exponent.
template <typename Word, Word kExponent>
FLEET_INLINE bool any_special(const void* data, int64_t count) {
  const Word* words = static_cast<const Word*>(data);
  Word found = 0;
#pragma omp simd reduction(| : found)
  for (int64_t i = 0; i < count; ++i) found |= (words[i] & kExponent) == kExponent;
  return found != 0;
}

FLEET_SIMD bool special_float32(const void* data, int64_t count) {
  return any_special<uint32_t, 0x7f800000>(data, count);
}
FLEET_SIMD bool special_bfloat16(const void* data, int64_t count) {
  return any_special<uint16_t, 0x7f80>(data, count);
}
FLEET_SIMD bool special_float16(const void* data, int64_t count) {
  return any_special<uint16_t, 0x7c00>(data, count);
}

bool is_special(const cpu::TypedChunk& chunk) {
  switch (chunk.dtype) {
    case DType::kBFloat16:
      return special_bfloat16(chunk.data, chunk.count);
    case DType::kFloat16:
      return special_float16(chunk.data, chunk.count);
    default:
      return special_float32(chunk.data, chunk.count);
  }
}

}  // namespace

FLEET_KERNEL(cpu, check_finite_and_unscale) {
  def.layouts = [](LayoutQuery& query) { cpu::as_they_lie(query); };
  def.create = [](KernelContext& context) {
    std::vector<cpu::TypedChunk> chunks;
    for (size_t i = 1; i < context.inputs.size(); ++i) {
      cpu::append_typed_chunks(chunks, context.inputs[i]);
    }
    const float* scaling = context.inputs[0].as<float>();
    int32_t* found_inf = context.outputs[0].as<int32_t>();
    float* unscale = context.outputs[1].as<float>();
    return make_kernel([=, chunks = std::move(chunks)](Stream&) {
      const int64_t count = static_cast<int64_t>(chunks.size());
      int found = 0;
#pragma omp parallel for reduction(| : found) if (count > 1)
      for (int64_t i = 0; i < count; ++i) found |= is_special(chunks[i]) ? 1 : 0;
      *found_inf = found;
      *unscale = 1 / *scaling;
    });
  };
}

}  // namespace fleet
