// The gradient of batch_norm with an activation whose input it computes again.
#include "backend/cpu/norm_loops.h"

namespace fleet {
namespace {

constexpr int kFirstGradient = 5;  // index of the first dy

void activation_layouts(LayoutQuery& query) {
  const Layout layout = cpu::channel_run_layout(query);
  query.need(0, layout);
  for (int i = kFirstGradient; i < query.input_count(); ++i) query.need(i, layout);
  query.give(0, layout);
  query.workspace(cpu::norm_workspace(query.input_var(0).shape, layout));
}

}  // namespace

FLEET_KERNEL(cpu, batch_norm_activation_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = activation_layouts;
  def.create = [](KernelContext& context) {
    const std::vector<Argument>&in = context.inputs, &out = context.outputs;
    std::vector<const void*> dy;
    for (size_t i = kFirstGradient; i < in.size(); ++i) dy.push_back(in[i].data);
    const Attributes& attributes = context.attributes();
    return cpu::norm_backward_kernel(
        {.x = in[0],
         .scale = in[1].as<float>(),
         .mean = in[3].as<float>(),
         .variance = in[4].as<float>(),
         .mask = nullptr,
         .dy = dy,
         .dx = out[0].data,
         .dz = nullptr,
         .dscale = out[1].as<float>(),
         .dbias = out[2].as<float>(),
         .is_test = attributes.boolean("is_test"),
         .epsilon = attributes.number("epsilon"),
         .workspace = context.workspace,
         .activation = cpu::norm_runs::recomputed_of(attributes.text("activation")),
         .bias = in[2].as<float>()});
  };
}

}  // namespace fleet
