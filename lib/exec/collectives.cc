// Kernels of the collective operations: alike on every device, since the communicator and the
// stream know theirs.
#include "exec/kernel.h"

namespace fleet {
namespace {

// Collectives sum memory as it lies: ranks of one job agree on the layouts (Plan::hash()).
void keep_layouts(LayoutQuery& query) {
  for (int i = 0; i < query.input_count(); ++i) {
    const Layout layout = query.input(i).value_or(Layout::plain(query.input_var(i).shape));
    query.need(i, layout);
    query.give(i, layout);
  }
}

}  // namespace

// The inputs lie side by side (OpDef::contiguous_inputs) with zeros between, so one call reduces
// all of them in place.
FLEET_KERNEL(any, all_reduce) {
  def.layouts = keep_layouts;
  def.create = [](KernelContext& context) {
    FLEET_CHECK(context.communicator != nullptr, "all_reduce in a job of one rank");
    const Argument& first = context.inputs.front();
    const Argument& last = context.inputs.back();
    const size_t bytes = last.as<char>() + last.bytes() - first.as<char>();
    const View view{first.data, bytes / size_of(first.dtype), first.dtype};
    Communicator* communicator = context.communicator;
    return make_kernel(
        [=](Stream& stream) { communicator->all_reduce(view, view, ReduceOp::kSum, stream); });
  };
}

}  // namespace fleet
