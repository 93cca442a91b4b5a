#include "backend/cuda/device.h"
#include "backend/cuda/gradient_check.h"
#include "backend/cuda/launch.h"

namespace fleet {
namespace {

// number: count of the inputs, including the loss, which is checked here.
__global__ void begin(const uint32_t* loss, int32_t number, int32_t* found) {
  *found = cuda::is_special<uint32_t, kFloat32Exponent>(*loss) ? number : 0;
}

// The lowest input has the largest value.
__global__ void find_special(const cuda::Chunk* chunks, const cuda::Gradient* gradients,
                             int32_t number, int32_t* found) {
  const cuda::Chunk chunk = chunks[blockIdx.x];
  const cuda::Gradient gradient = gradients[chunk.tensor];
  const bool special = cuda::any_special(gradient.data, gradient.dtype, chunk.begin, chunk.count);
  if (cuda::ballot(special) != 0 && threadIdx.x % cuda::kWarp == 0) {
    cuda::atomic_max(found, number - 1 - chunk.tensor);
  }
}

__global__ void note(const int32_t* found, int32_t number, int64_t* record) {
  record[0] += 1;
  if (*found == 0) return;
  record[1] += 1;
  if (record[2] != 0) return;
  record[2] = record[0];
  record[3] = number - *found;
}

}  // namespace

FLEET_KERNEL(cuda, check_finite) {
  def.layouts = cuda::keep_input_layouts;
  def.create = [](KernelContext& context) {
    const cuda::GradientTable table(context, 2);
    const auto number = table.count() + 1;
    const uint32_t* loss = context.inputs[1].as<const uint32_t>();
    int32_t* found = context.outputs[0].as<int32_t>();
    int64_t* record = context.outputs[1].as<int64_t>();
    FLEET_CHECK(context.inputs[0].data == record, "check_finite works in place");
    return make_kernel([=](Stream& stream) {
      cuda::launch(begin, 1, 1, 0, cuda::stream_of(stream), loss, number, found);
      cuda::launch(find_special, cuda::blocks_for(table.chunk_count(), 1), cuda::kBlock, 0,
                   cuda::stream_of(stream), table.chunks(), table.gradients(), number, found);
      cuda::launch(note, 1, 1, 0, cuda::stream_of(stream), found, number, record);
    });
  };
}

}  // namespace fleet
