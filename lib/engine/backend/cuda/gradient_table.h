// The gradients that a check over all of them reads, in chunks. For .cu files.
#pragma once

#include <vector>

#include "backend/cuda/tables.h"

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

}  // namespace fleet::cuda
