#include "backend/cpu/dnnl_glue.h"
#include "backend/cpu/rows.h"

namespace fleet {
namespace {

int axis_of(const Attributes& attributes) { return static_cast<int>(attributes.integer("axis")); }

// Both tensors in the input's layout, if the part begins and ends between blocks. Otherwise they
// are plain.
void layouts(LayoutQuery& query) {
  const int axis = axis_of(query.attributes());
  const Shape &x = query.input_var(0).shape, &y = query.output_var(0).shape;
  const std::optional<Layout> pattern = cpu::row_pattern(query.input(0), x, axis);
  if (!pattern) return;
  const int64_t block = cpu::Rows(*pattern, axis).block;
  if (query.attributes().integer("start") % block != 0 || x[axis] % block != 0 ||
      y[axis] % block != 0) {
    return;
  }
  query.need(0, *pattern);
  query.give(0, cpu::layout_like(*pattern, y));
}

}  // namespace

FLEET_KERNEL(cpu, slice) {
  def.dtypes = cpu::kAllTypes;
  def.layouts = layouts;
  def.create = [](KernelContext& context) {
    const int axis = axis_of(context.attributes());
    const cpu::Rows whole(context.inputs[0].layout, axis), part(context.outputs[0].layout, axis);
    const auto size = static_cast<int64_t>(size_of(context.outputs[0].dtype));
    const int64_t offset = whole.offset(context.attributes().integer("start")) * size;
    const char* x = context.inputs[0].as<char>() + offset;
    char* y = context.outputs[0].as<char>();
    return make_kernel([=](Stream&) {
      cpu::copy_rows(part.count, part.row * size, x, whole.row * size, y, part.row * size);
    });
  };
}

FLEET_KERNEL(cpu, slice_grad) {
  def.dtypes = cpu::kAllTypes;
  def.layouts = layouts;
  def.create = [](KernelContext& context) {
    const int axis = axis_of(context.attributes());
    const cpu::Rows whole(context.outputs[0].layout, axis), part(context.inputs[0].layout, axis);
    const auto size = static_cast<int64_t>(size_of(context.outputs[0].dtype));
    const int64_t offset = whole.offset(context.attributes().integer("start")) * size;
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
