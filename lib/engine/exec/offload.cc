// Kernels of the copies between a device and host memory. They are the same on every device.
#include "exec/kernel.h"

namespace fleet {
namespace {

// Data is copied in its memory order.
void keep_layout(LayoutQuery& query) {
  for (int i = 0; i < query.input_count(); ++i) {
    if (!query.has_input(i)) continue;
    query.need(i, query.input(i).value_or(Layout::plain(query.input_var(i).shape)));
  }
  if (query.output_count() > 0) query.give(0, query.needed(0));
}

std::unique_ptr<Kernel> copy(KernelContext& context) {
  const Argument from = context.inputs[0], to = context.outputs[0];
  Device* device = &context.device;
  return make_kernel(
      [=](Stream& stream) { device->copy(to.data, from.data, from.bytes(), stream); });
}

}  // namespace

FLEET_KERNEL(any, copy_to_host) {
  def.layouts = keep_layout;
  def.create = copy;
}

FLEET_KERNEL(any, copy_from_host) {
  def.layouts = keep_layout;
  def.create = copy;
}

// The schedule has already made the stream wait.
FLEET_KERNEL(any, wait_for) {
  def.layouts = keep_layout;
  def.create = [](KernelContext&) { return make_kernel([](Stream&) {}); };
}

}  // namespace fleet
