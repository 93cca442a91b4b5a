#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"

namespace fleet {

FLEET_KERNEL(cuda, reorder) {
  def.dtypes = cuda::any_types();
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const int64_t count = y.shape.elements();
    if (x.layout.elements() == count && y.layout.elements() == count) {
      const auto axes = cuda::axes_between(y.shape, x.layout, y.layout);
      if (!axes.empty()) {
        const cuda::Copy copy(axes, size_of(y.dtype), x.data, y.data);
        return make_kernel([=](Stream& stream) { copy.run(cuda::stream_of(stream)); });
      }
    }
    return make_kernel([=](Stream& stream) { cuda::relayout(x, y, cuda::stream_of(stream)); });
  };
}

}  // namespace fleet
