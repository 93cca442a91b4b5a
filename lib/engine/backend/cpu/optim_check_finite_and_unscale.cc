#include "backend/cpu/optim_chunks.h"

namespace fleet {

FLEET_KERNEL(cpu, check_finite_and_unscale) {
  def.layouts = [](LayoutQuery& query) { cpu::keep_input_layouts(query); };
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
      for (int64_t i = 0; i < count; ++i) found |= cpu::any_special(chunks[i]) ? 1 : 0;
      *found_inf = found;
      *unscale = 1 / *scaling;
    });
  };
}

}  // namespace fleet
