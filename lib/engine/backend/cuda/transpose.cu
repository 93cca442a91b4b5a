#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"

namespace fleet {

FLEET_KERNEL(cuda, transpose) {
  def.dtypes = cuda::any_types();
  def.create = [](KernelContext& context) {
    const Argument x = context.inputs[0], y = context.outputs[0];
    const std::vector<int64_t>& perm = context.attributes().integers("perm");
    std::vector<cuda::CopyAxis> axes{{1, 1, 1}};
    for (size_t d = 0; d < perm.size(); ++d) {
      axes.push_back(
          {y.shape[static_cast<int>(d)], x.layout.strides()[perm[d]], y.layout.strides()[d]});
    }
    const cuda::Copy copy(axes, size_of(y.dtype), x.data, y.data);
    return make_kernel([=](Stream& stream) { copy.run(cuda::stream_of(stream)); });
  };
}

}  // namespace fleet
