#include "backend/cpu/elementwise.h"
#include "backend/cpu/norm_loops.h"

namespace fleet {
namespace {

void forward_layouts(LayoutQuery& query) {
  const Layout layout = cpu::channel_run_layout(query);
  query.need(0, layout);
  query.need(5, layout);
  query.give(0, layout);
  if (query.has_output(5)) query.give(5, cpu::norm_mask(query.input_var(0).shape, layout));
  query.workspace(cpu::norm_workspace(query.input_var(0).shape, layout));
}

void backward_layouts(LayoutQuery& query) {
  const Layout layout = cpu::channel_run_layout(query);
  query.need(0, layout);
  query.need(4, *query.input(4));
  for (int i = 5; i < query.input_count(); ++i) query.need(i, layout);
  query.give(0, layout);
  query.give(1, layout);
  query.workspace(cpu::norm_workspace(query.input_var(0).shape, layout));
}

}  // namespace

FLEET_KERNEL(cpu, fused_bn_add_activation) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) {
    return cpu::norm_forward_kernel({.x = context.inputs[0],
                                     .scale = context.inputs[1].as<float>(),
                                     .bias = context.inputs[2].as<float>(),
                                     .mean = context.inputs[3].as<float>(),
                                     .variance = context.inputs[4].as<float>(),
                                     .z = context.inputs[5].data,
                                     .y = context.outputs[0].data,
                                     .mean_out = context.outputs[1].as<float>(),
                                     .variance_out = context.outputs[2].as<float>(),
                                     .saved_mean = context.outputs[3].as<float>(),
                                     .saved_variance = context.outputs[4].as<float>(),
                                     .mask = context.outputs[5].as<uint16_t>(),
                                     .is_test = context.attributes().boolean("is_test"),
                                     .epsilon = context.attributes().number("epsilon"),
                                     .momentum = context.attributes().number("momentum"),
                                     .workspace = context.workspace});
  };
}

FLEET_KERNEL(cpu, fused_bn_add_activation_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) {
    std::vector<const void*> dy;
    for (size_t i = 5; i < context.inputs.size(); ++i) dy.push_back(context.inputs[i].data);
    return cpu::norm_backward_kernel({.x = context.inputs[0],
                                      .scale = context.inputs[1].as<float>(),
                                      .mean = context.inputs[2].as<float>(),
                                      .variance = context.inputs[3].as<float>(),
                                      .mask = context.inputs[4].as<uint16_t>(),
                                      .dy = dy,
                                      .dx = context.outputs[0].data,
                                      .dz = context.outputs[1].data,
                                      .dscale = context.outputs[2].as<float>(),
                                      .dbias = context.outputs[3].as<float>(),
                                      .is_test = context.attributes().boolean("is_test"),
                                      .epsilon = context.attributes().number("epsilon"),
                                      .workspace = context.workspace});
  };
}

}  // namespace fleet
