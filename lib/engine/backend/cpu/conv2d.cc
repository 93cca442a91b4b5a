#include "backend/cpu/channels.h"
#include "backend/cpu/convolution.h"
#include "backend/cpu/device.h"
#include "backend/cpu/image_layout.h"

namespace fleet {
namespace {

using cpu::Convolution;
using cpu::ConvolutionChoice;
using cpu::DepthwiseWeight;
using cpu::ReluDepthwise;

// conv2d's own convolution. device: null if a Plan is only printed.
template <typename Tensor>
Convolution convolution_of(Convolution::Direction direction, const Attributes& attributes,
                           const Device* device, const Tensor& x, const Tensor& weight,
                           const Tensor& y) {
  Convolution conv = cpu::convolution_of(direction, attributes, x, weight, y);
  // Winograd's method has blocks of channels only.
  if (attributes.boolean("winograd") && !cpu::prefers_channels_last(conv.type)) {
    conv.winograd_memory = static_cast<size_t>(cpu::options_of(device).conv_workspace_size_limit)
                           << 20;
  }
  return conv;
}

// weight: its present layout.
ConvolutionChoice choose(const Convolution& conv, const std::optional<Layout>& weight,
                         std::vector<cpu::ConvolutionLayouts> candidates) {
  return cpu::choose(conv, cpu::with_preferred(conv, weight, std::move(candidates)));
}

bool has_relu(const Attributes& attributes) { return !attributes.text("input_activation").empty(); }

// Bytes of the kernel's scratch memory.
size_t workspace_of(const LayoutQuery& query, const Convolution& conv,
                    const ConvolutionChoice& choice) {
  if (!has_relu(query.attributes())) return choice.workspace;
  return ReluDepthwise(conv, choice.x, choice.weight, choice.y).workspace();
}

// An image keeps its layout if that is fast, so that no reorder is needed. A weight without a
// layout takes the one that the forward convolution prefers.
void forward_layouts(LayoutQuery& query) {
  const Var &x = query.input_var(0), &weight = query.input_var(1);
  Convolution conv = convolution_of(Convolution::kForward, query.attributes(), query.device(), x,
                                    weight, query.output_var(0));
  if (query.has_input(2)) conv.bias = query.input_var(2).dtype;
  const ConvolutionChoice choice = choose(conv, query.input(1),
                                          {{query.input(0), query.input(1), std::nullopt},
                                           {query.input(0), std::nullopt, std::nullopt},
                                           {std::nullopt, query.input(1), std::nullopt},
                                           {}});
  query.need(0, choice.x);
  query.need(1, choice.weight);
  query.give(0, choice.y);
  query.workspace(workspace_of(query, conv, choice));
}

bool is_own(const Attributes& attributes, const Convolution& conv) {
  return !has_relu(attributes) && DepthwiseWeight::is_for(conv);
}

// The gradient of a parameter must end in the parameter's layout: written directly if that is fast.
void weight_layouts(LayoutQuery& query) {
  if (!query.has_output(0)) {
    // The bias alone can be computed from any layout that the image may have.
    if (query.input(1) && !query.input(1)->is_opaque()) query.need(1, *query.input(1));
    if (query.input(0)) query.need(0, *query.input(0));
    return;
  }
  const Var &x = query.input_var(0), &dy = query.input_var(1), &dweight = query.output_var(0);
  Convolution conv =
      convolution_of(Convolution::kWeight, query.attributes(), query.device(), x, dweight, dy);
  if (query.has_output(1)) conv.bias = query.output_var(1).dtype;
  if (is_own(query.attributes(), conv)) {
    query.need(0, DepthwiseWeight::image_layout(x.shape, conv.type));
    query.need(1, DepthwiseWeight::image_layout(dy.shape, conv.type));
    query.give(0, DepthwiseWeight::weight_layout(dweight.shape));
    return;
  }
  const ConvolutionChoice choice = choose(conv, query.bound_output(0),
                                          {{query.input(0), query.bound_output(0), query.input(1)},
                                           {query.input(0), std::nullopt, query.input(1)},
                                           {std::nullopt, query.bound_output(0), std::nullopt},
                                           {}});
  query.need(0, choice.x);
  query.need(1, choice.y);
  query.give(0, choice.weight);
  query.workspace(workspace_of(query, conv, choice));
}

void data_layouts(LayoutQuery& query) {
  const Convolution conv =
      convolution_of(Convolution::kData, query.attributes(), query.device(), query.output_var(0),
                     query.input_var(0), query.input_var(1));
  const ConvolutionChoice choice = choose(conv, query.input(0),
                                          {{query.bound_output(0), query.input(0), query.input(1)},
                                           {std::nullopt, query.input(0), query.input(1)},
                                           {std::nullopt, std::nullopt, query.input(1)},
                                           {}});
  query.need(0, choice.weight);
  query.need(1, choice.y);
  query.give(0, choice.x);
  if (query.has_input(2)) query.need(2, choice.x);
  query.workspace(workspace_of(query, conv, choice));
}

}  // namespace

FLEET_KERNEL(cpu, conv2d) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    Convolution conv =
        convolution_of(Convolution::kForward, context.attributes(), &context.device, x, weight, y);
    if (bias) conv.bias = bias.dtype;
    if (has_relu(context.attributes())) {
      return ReluDepthwise(conv, x.layout, weight.layout, y.layout)
          .make_forward(x, weight, bias, y, context.workspace);
    }
    return cpu::make_convolution(conv, x, weight, bias, y, context.workspace);
  };
}

FLEET_KERNEL(cpu, conv2d_weight_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = weight_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    if (!dweight) {
      return make_kernel([image = cpu::Channels(dy), dbias](Stream&) { image.sum(dbias); });
    }
    Convolution conv =
        convolution_of(Convolution::kWeight, context.attributes(), &context.device, x, dweight, dy);
    if (dbias) conv.bias = dbias.dtype;
    if (is_own(context.attributes(), conv)) {
      return DepthwiseWeight::make(conv, x, dy, dweight, dbias);
    }
    if (has_relu(context.attributes())) {
      return ReluDepthwise(conv, x.layout, dweight.layout, dy.layout)
          .make_weight(x, dy, dweight, dbias, context.workspace);
    }
    return cpu::make_convolution(conv, x, dweight, dbias, dy, context.workspace);
  };
}

FLEET_KERNEL(cpu, conv2d_data_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = data_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    const Convolution conv =
        convolution_of(Convolution::kData, context.attributes(), &context.device, dx, weight, dy);
    if (has_relu(context.attributes())) {
      return ReluDepthwise(conv, dx.layout, weight.layout, dy.layout)
          .make_data(weight, dy, context.inputs[2], dx, context.workspace);
    }
    return cpu::make_convolution(conv, dx, weight, {}, dy, context.workspace);
  };
}

}  // namespace fleet
