#include "backend/cpu/optim_chunks.h"

namespace fleet {
namespace {

// A stretch of a gradient.
struct Stretch {
  cpu::TypedChunk chunk;
  int32_t input;  // 0: the loss, 1: the first gradient
};

std::vector<Stretch> stretches_of(const std::vector<Argument>& inputs) {
  std::vector<Stretch> stretches;
  std::vector<cpu::TypedChunk> chunks;
  for (size_t i = 1; i < inputs.size(); ++i) {
    chunks.clear();
    cpu::append_typed_chunks(chunks, inputs[i]);
    for (const cpu::TypedChunk& chunk : chunks) {
      stretches.push_back({chunk, static_cast<int32_t>(i) - 1});
    }
  }
  return stretches;
}

}  // namespace

FLEET_KERNEL(cpu, check_finite) {
  def.layouts = [](LayoutQuery& query) { cpu::keep_input_layouts(query); };
  def.create = [](KernelContext& context) {
    std::vector<Stretch> stretches = stretches_of(context.inputs);
    const auto number = static_cast<int32_t>(context.inputs.size() - 1);
    int32_t* found = context.outputs[0].as<int32_t>();
    int64_t* record = context.outputs[1].as<int64_t>();
    FLEET_CHECK(context.inputs[0].data == record, "check_finite works in place");
    return make_kernel([=, stretches = std::move(stretches)](Stream&) {
      const auto count = static_cast<int64_t>(stretches.size());
      int32_t lowest = number;
#pragma omp parallel for reduction(min : lowest) if (count > 1)
      for (int64_t i = 0; i < count; ++i) {
        const Stretch& at = stretches[i];
        if (at.input < lowest && cpu::any_special(at.chunk)) lowest = at.input;
      }
      *found = number - lowest;
      record[0] += 1;
      if (*found == 0) return;
      record[1] += 1;
      if (record[2] != 0) return;
      record[2] = record[0];
      record[3] = lowest;
    });
  };
}

}  // namespace fleet
