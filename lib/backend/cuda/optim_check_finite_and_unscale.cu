#include "backend/cuda/device.h"
#include "backend/cuda/special_values.h"

namespace fleet {
namespace {

struct Gradient {
  const void* data;
  DType dtype;
};

// *found_inf is 0 before. All blocks that write it write the same.
__global__ void look(const cuda::Chunk* chunks, const Gradient* gradients, int32_t* found_inf) {
  const cuda::Chunk chunk = chunks[blockIdx.x];
  const Gradient gradient = gradients[chunk.tensor];
  const bool found = cuda::any_special(gradient.data, gradient.dtype, chunk.begin, chunk.count);
  if (cuda::ballot(found) != 0 && threadIdx.x % cuda::kWarp == 0) *found_inf = 1;
}

__global__ void begin(const float* scaling, int32_t* found_inf, float* unscale) {
  *found_inf = 0;
  *unscale = 1 / *scaling;
}

}  // namespace

FLEET_KERNEL(cuda, check_finite_and_unscale) {
  def.layouts = [](LayoutQuery& query) {  // as they lie: padding is zero
    for (int i = 0; i < query.input_count(); ++i) {
      if (query.input(i) && !query.input(i)->is_opaque()) query.need(i, *query.input(i));
    }
  };
  def.create = [](KernelContext& context) {
    std::vector<cuda::Chunk> chunks;
    std::vector<Gradient> gradients;
    for (size_t i = 1; i < context.inputs.size(); ++i) {
      const Argument& gradient = context.inputs[i];
      FLEET_CHECK(is_floating(gradient.dtype) && gradient.dtype != DType::kFloat64,
                  "no such gradient");
      cuda::append_chunks(chunks, static_cast<int32_t>(gradients.size()),
                          gradient.layout.elements());
      gradients.push_back({gradient.data, gradient.dtype});
    }
    const cuda::Table<cuda::Chunk> chunk_table(context.device, chunks);
    const cuda::Table<Gradient> gradient_table(context.device, gradients);
    const float* scaling = context.inputs[0].as<const float>();
    int32_t* found_inf = context.outputs[0].as<int32_t>();
    float* unscale = context.outputs[1].as<float>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(begin, 1, 1, 0, cuda::stream_of(stream), scaling, found_inf, unscale);
      cuda::launch(look, cuda::blocks_for(chunk_table.size(), 1), cuda::kBlock, 0,
                   cuda::stream_of(stream), chunk_table.data(), gradient_table.data(), found_inf);
    });
  };
}

}  // namespace fleet
