// Tensors of mixed floating types, split into chunks for reductions over all gradients, and the
// check of a chunk for infinities and NaNs. The bounds, and therefore the results, do not depend on
// the number of threads.
#pragma once

#include <vector>

#include "backend/cpu/elementwise.h"
#include "tensor/dtype.h"

namespace fleet::cpu {

struct TypedChunk {
  const void* data;
  int64_t count;
  DType dtype;
};

// The elements of a tensor, including padding.
inline void append_typed_chunks(std::vector<TypedChunk>& chunks, const Argument& argument) {
  const int64_t count = argument.layout.elements();
  const char* data = argument.as<char>();
  for (int64_t at = 0; at < count; at += kReduceElements) {
    chunks.push_back({data + at * static_cast<int64_t>(size_of(argument.dtype)),
                      std::min(kReduceElements, count - at), argument.dtype});
  }
}

// Accepts every input in its own layout: padding holds zeros, which change nothing. Returns the
// number of chunks.
inline int64_t keep_input_layouts(LayoutQuery& query) {
  int64_t chunks = 0;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.input(i) && !query.input(i)->is_opaque()) query.need(i, *query.input(i));
    chunks += (query.needed(i).elements() + kReduceElements - 1) / kReduceElements;
  }
  return chunks;
}

static FLEET_SIMD bool special_float32(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint32_t*>(data), count, kFloat32Exponent);
}
static FLEET_SIMD bool special_bfloat16(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint16_t*>(data), count, kBFloat16Exponent);
}
static FLEET_SIMD bool special_float16(const void* data, int64_t count) {
  return fleet::any_special(static_cast<const uint16_t*>(data), count, kFloat16Exponent);
}

// For chunks of float32, bfloat16 or float16.
inline bool any_special(const TypedChunk& chunk) {
  switch (chunk.dtype) {
    case DType::kBFloat16:
      return special_bfloat16(chunk.data, chunk.count);
    case DType::kFloat16:
      return special_float16(chunk.data, chunk.count);
    default:
      return special_float32(chunk.data, chunk.count);
  }
}

}  // namespace fleet::cpu
