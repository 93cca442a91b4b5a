#include "backend/cuda/device.h"
#include "backend/cuda/gradient_check.h"

namespace fleet {
namespace {

// *found_inf is 0 initially. All blocks that write it write the same value.
__global__ void find_special(const cuda::Chunk* chunks, const cuda::Gradient* gradients,
                             int32_t* found_inf) {
  const cuda::Chunk chunk = chunks[blockIdx.x];
  const cuda::Gradient gradient = gradients[chunk.tensor];
  const bool found = cuda::any_special(gradient.data, gradient.dtype, chunk.begin, chunk.count);
  if (cuda::ballot(found) != 0 && threadIdx.x % cuda::kWarp == 0) *found_inf = 1;
}

__global__ void begin(const float* scaling, int32_t* found_inf, float* unscale) {
  *found_inf = 0;
  *unscale = 1 / *scaling;
}

}  // namespace

FLEET_KERNEL(cuda, check_finite_and_unscale) {
  def.layouts = cuda::keep_input_layouts;
  def.create = [](KernelContext& context) {
    const cuda::GradientTable table(context, 1);
    const float* scaling = context.inputs[0].as<const float>();
    int32_t* found_inf = context.outputs[0].as<int32_t>();
    float* unscale = context.outputs[1].as<float>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(begin, 1, 1, 0, cuda::stream_of(stream), scaling, found_inf, unscale);
      cuda::launch(find_special, cuda::blocks_for(table.chunk_count(), 1), cuda::kBlock, 0,
                   cuda::stream_of(stream), table.chunks(), table.gradients(), found_inf);
    });
  };
}

}  // namespace fleet
