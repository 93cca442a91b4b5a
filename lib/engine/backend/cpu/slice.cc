#include "backend/cpu/rows.h"

namespace fleet {
FLEET_KERNEL(cpu, slice) {
  def.dtypes = cpu::kAllTypes;
  def.create = [](KernelContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    const cpu::Rows whole(context.inputs[0].shape, axis), part(context.outputs[0].shape, axis);
    const auto size = static_cast<int64_t>(size_of(context.outputs[0].dtype));
    const int64_t step = whole.row / context.inputs[0].shape[static_cast<int>(axis)] * size;
    const char* x = context.inputs[0].as<char>() + context.attributes().integer("start") * step;
    char* y = context.outputs[0].as<char>();
    return make_kernel([=](Stream&) {
      cpu::copy_rows(part.count, part.row * size, x, whole.row * size, y, part.row * size);
    });
  };
}

FLEET_KERNEL(cpu, slice_grad) {
  def.dtypes = cpu::kAllTypes;
  def.create = [](KernelContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    const cpu::Rows whole(context.outputs[0].shape, axis), part(context.inputs[0].shape, axis);
    const auto size = static_cast<int64_t>(size_of(context.outputs[0].dtype));
    const int64_t step = whole.row / context.outputs[0].shape[static_cast<int>(axis)] * size;
    const int64_t offset = context.attributes().integer("start") * step;
    const char* dy = context.inputs[0].as<char>();
    char* dx = context.outputs[0].as<char>();
    const auto bytes = static_cast<int64_t>(context.outputs[0].bytes());
    return make_kernel([=](Stream&) {
      std::memset(dx, 0, bytes);
      cpu::copy_rows(part.count, part.row * size, dy, part.row * size, dx + offset,
                     whole.row * size);
    });
  };
}

}  // namespace fleet
