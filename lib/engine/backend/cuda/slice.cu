#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"

namespace fleet {

FLEET_KERNEL(cuda, slice) {
  def.dtypes = cuda::any_types();
  def.layouts = cuda::slice_layouts;
  def.create = [](KernelContext& context) {
    const cuda::Copy copy =
        cuda::copy_part(context.outputs[0], context.inputs[0],
                        static_cast<int>(context.attributes().integer("axis")),
                        context.attributes().integer("start"), /*to_whole=*/false);
    return make_kernel([=](Stream& stream) { copy.run(cuda::stream_of(stream)); });
  };
}

FLEET_KERNEL(cuda, slice_grad) {
  def.dtypes = cuda::any_types();
  def.layouts = cuda::slice_layouts;
  def.create = [](KernelContext& context) {
    const Argument dx = context.outputs[0];
    const cuda::Copy copy = cuda::copy_part(
        context.inputs[0], dx, static_cast<int>(context.attributes().integer("axis")),
        context.attributes().integer("start"), /*to_whole=*/true);
    return make_kernel([=](Stream& stream) {
      cuda::check(cudaMemsetAsync(dx.data, 0, dx.bytes(), cuda::stream_of(stream)),
                  "cudaMemsetAsync");
      copy.run(cuda::stream_of(stream));
    });
  };
}

}  // namespace fleet
