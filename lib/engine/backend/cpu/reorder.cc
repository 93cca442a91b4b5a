#include "backend/cpu/dnnl_glue.h"

namespace fleet {

FLEET_KERNEL(cpu, reorder) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16, DType::kInt32, DType::kUInt8};
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &y = context.outputs[0];
    return cpu::translated("reorder of " + x.layout.text() + " to " + y.layout.text(), [&] {
      const dnnl::reorder::primitive_desc desc(cpu::engine(), cpu::desc_of(x), cpu::engine(),
                                               cpu::desc_of(y), cpu::user_scratchpad());
      // The Plan assigns no workspace to reorders that it inserts. The rare kinds that need one
      // allocate their own.
      const size_t bytes = cpu::scratchpad_bytes(desc);
      const Buffer scratch = bytes > 0 ? context.device.allocate(bytes) : Buffer();
      auto kernel = std::make_unique<cpu::PrimitiveKernel>(desc, scratch.data());
      kernel->bind(DNNL_ARG_FROM, x.data);
      kernel->bind(DNNL_ARG_TO, y.data);
      kernel->keep(scratch);
      return kernel;
    });
  };
}

}  // namespace fleet
