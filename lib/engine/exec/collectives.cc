// Kernels of the collective operations. They are the same on every device, because the communicator
// and the stream know theirs. A group of one rank has no communicator: its collectives copy or do
// nothing.
#include "exec/kernel.h"

namespace fleet {
namespace {

// In place, data is sent in its memory order: the ranks of a group agree on the layouts
// (Plan::collective_sequences()).
void keep_layouts(LayoutQuery& query) {
  for (int i = 0; i < query.input_count(); ++i) {
    const Layout layout = query.input(i).value_or(Layout::plain(query.input_var(i).shape));
    query.need(i, layout);
    query.give(i, layout);
  }
}

View view_of(const Argument& argument) {
  return {argument.data, argument.bytes() / size_of(argument.dtype), argument.dtype};
}

// One view over contiguous tensors and the gaps between them (Collective), so that one
// call covers them all. The gaps are summed too; no operation reads them.
View bucket_view(const std::vector<Argument>& tensors) {
  const Argument& first = tensors.front();
  const Argument& last = tensors.back();
  const size_t bytes = last.as<char>() + last.bytes() - first.as<char>();
  return {first.data, bytes / size_of(first.dtype), first.dtype};
}

ReduceOp reduction(const KernelContext& context) {
  const std::string& op = context.attributes().text("op");
  return op == "min" ? ReduceOp::kMin : op == "max" ? ReduceOp::kMax : ReduceOp::kSum;
}

int member(const KernelContext& context, const char* attribute) {
  return static_cast<int>(context.attributes().integer(attribute));
}

std::unique_ptr<Kernel> call_kernel(const KernelContext& context, const CollectiveCall& call) {
  return make_kernel([call, communicator = context.communicator](Stream& stream) {
    communicator->issue(call, stream);
  });
}

// In place, over all inputs.
std::unique_ptr<Kernel> bucket_kernel(const KernelContext& context, CollectiveCall call) {
  if (!context.communicator) return make_kernel([](Stream&) {});
  call.in = call.out = bucket_view(context.inputs);
  return call_kernel(context, call);
}

// For a group of one rank: y is x.
std::unique_ptr<Kernel> local_copy(KernelContext& context) {
  const View from = view_of(context.inputs[0]), to = view_of(context.outputs[0]);
  Device* device = &context.device;
  return make_kernel(
      [=](Stream& stream) { device->copy(to.data, from.data, from.bytes(), stream); });
}

}  // namespace

FLEET_KERNEL(any, all_reduce) {
  def.layouts = keep_layouts;
  def.create = [](KernelContext& context) {
    return bucket_kernel(context, {.kind = CollectiveKind::kAllReduce, .op = reduction(context)});
  };
}

FLEET_KERNEL(any, reduce) {
  def.layouts = keep_layouts;
  def.create = [](KernelContext& context) {
    return bucket_kernel(context, {.kind = CollectiveKind::kReduce,
                                   .op = reduction(context),
                                   .peer = member(context, "root")});
  };
}

FLEET_KERNEL(any, broadcast) {
  def.layouts = keep_layouts;
  def.create = [](KernelContext& context) {
    return bucket_kernel(context,
                         {.kind = CollectiveKind::kBroadcast, .peer = member(context, "root")});
  };
}

// The Plan gives inputs and outputs the same layouts.
FLEET_KERNEL(any, fetch_parameters) {
  def.create = [](KernelContext& context) {
    struct Copy {
      void* to;
      const void* from;
      size_t bytes;
    };
    const int root = member(context, "root");
    Communicator* communicator = context.communicator;
    std::vector<Copy> copies;  // on the root
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      if (communicator && communicator->rank() != root) break;
      const Argument& from = context.inputs[i];
      copies.push_back({context.outputs[i].data, from.data, from.bytes()});
    }
    const View view = bucket_view(context.outputs);
    Device* device = &context.device;
    return make_kernel([=](Stream& stream) {
      for (const Copy& copy : copies) device->copy(copy.to, copy.from, copy.bytes, stream);
      if (communicator) communicator->broadcast(view, root, stream);
    });
  };
}

// The parts are rows of the tensors, so the layouts are plain.
FLEET_KERNEL(any, all_gather) {
  def.create = [](KernelContext& context) {
    if (!context.communicator) return local_copy(context);
    return call_kernel(context, {CollectiveKind::kAllGather, view_of(context.inputs[0]),
                                 view_of(context.outputs[0])});
  };
}

FLEET_KERNEL(any, reduce_scatter) {
  def.create = [](KernelContext& context) {
    if (!context.communicator) return local_copy(context);
    return call_kernel(context, {CollectiveKind::kReduceScatter, view_of(context.inputs[0]),
                                 view_of(context.outputs[0]), reduction(context)});
  };
}

FLEET_KERNEL(any, send) {
  def.create = [](KernelContext& context) {
    FLEET_CHECK(context.communicator, "send in a group of one rank");
    return call_kernel(context, {.kind = CollectiveKind::kSend,
                                 .in = view_of(context.inputs[0]),
                                 .peer = member(context, "peer")});
  };
}

FLEET_KERNEL(any, recv) {
  def.create = [](KernelContext& context) {
    FLEET_CHECK(context.communicator, "recv in a group of one rank");
    return call_kernel(context, {.kind = CollectiveKind::kRecv,
                                 .in = view_of(context.outputs[0]),
                                 .peer = member(context, "peer")});
  };
}

}  // namespace fleet
