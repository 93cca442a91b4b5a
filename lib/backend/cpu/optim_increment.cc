#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cpu, increment) {
  def.dtypes = {DType::kInt64};
  def.create = [](KernelContext& context) {
    int64_t* x = context.outputs[0].as<int64_t>();
    return make_kernel([=](Stream&) { ++*x; });
  };
}

}  // namespace fleet
