// Batch normalization and its fusions, with our own kernels.
#include <string>

#include "backend/cuda/device.h"
#include "backend/cuda/layouts.h"
#include "backend/cuda/norm.h"
#include "base/error.h"
#include "exec/kernel.h"

namespace fleet {

void cuda::take_gradients(const KernelContext& context, size_t first, NormBackward* norm) {
  for (size_t i = first; i < context.inputs.size(); ++i) {
    if (norm->gradients == kMaxNormGradients) {
      throw Error(ErrorCode::kUnsupported,
                  "more than " + std::to_string(kMaxNormGradients) +
                      " operations read one result of a batch normalization",
                  context.op.type(), "switch the pass fuse_gradient_sums off");
    }
    norm->dy[norm->gradients++] = context.inputs[i].data;
  }
}

namespace {

using cuda::norm_mask_layout;
using cuda::norm_shape;
using cuda::NormShape;
using cuda::rows_of_channels;

void forward_layouts(LayoutQuery& query) {
  const Var& x = query.input_var(0);
  const Layout layout = rows_of_channels(x.shape);
  const NormShape shape = norm_shape(x.shape, x.dtype);
  query.need(0, layout);
  if (query.input_count() > 5) query.need(5, layout);
  query.give(0, layout);
  if (query.has_output(5)) query.give(5, norm_mask_layout(shape));
  query.workspace(norm_workspace(shape));
}

const float* parameter(const Argument& argument) {
  FLEET_CHECK(!argument || argument.dtype == DType::kFloat32,
              "a parameter or statistic of batch normalization is not float32");
  return argument.as<float>();
}

std::unique_ptr<Kernel> forward(KernelContext& context) {
  const Argument& x = context.inputs[0];
  const Attributes& attributes = context.attributes();
  cuda::NormForward norm{.shape = norm_shape(x.shape, x.dtype),
                         .x = x.data,
                         .scale = parameter(context.inputs[1]),
                         .bias = parameter(context.inputs[2]),
                         .mean = parameter(context.inputs[3]),
                         .variance = parameter(context.inputs[4]),
                         .z = context.inputs.size() > 5 ? context.inputs[5].data : nullptr,
                         .y = context.outputs[0].data,
                         .mean_out = context.outputs[1].as<float>(),
                         .variance_out = context.outputs[2].as<float>(),
                         .saved_mean = context.outputs[3].as<float>(),
                         .saved_variance = context.outputs[4].as<float>(),
                         .mask = context.outputs[5].as<uint8_t>(),
                         .activation = cuda::norm_activation(attributes.text("activation")),
                         .is_test = attributes.boolean("is_test"),
                         .epsilon = attributes.number("epsilon"),
                         .momentum = attributes.number("momentum"),
                         .workspace = context.workspace};
  return make_kernel([norm](Stream& stream) { norm_forward(norm, cuda::stream_of(stream)); });
}

// Index of the first gradient of y: the last slot, which has one or more.
constexpr int kGradients = 5;

void backward_layouts(LayoutQuery& query) {
  const Var& x = query.input_var(0);
  const Layout layout = rows_of_channels(x.shape);
  query.need(0, layout);
  const bool masked = query.op().type() != "batch_norm_activation_grad";
  if (masked && query.has_input(4)) query.need(4, *query.input(4));
  for (int i = kGradients; i < query.input_count(); ++i) query.need(i, layout);
  for (int i = 0; i < query.output_count(); ++i) {
    if (query.has_output(i) && query.output_var(i).shape == x.shape) query.give(i, layout);
  }
  query.workspace(norm_workspace(norm_shape(x.shape, x.dtype)));
}

// dz: the output for the gradient before the activation, or absent.
std::unique_ptr<Kernel> backward(KernelContext& context, const Argument& dx, const Argument& dz,
                                 const Argument& dscale, const Argument& dbias) {
  const Argument& x = context.inputs[0];
  cuda::NormBackward norm{.shape = norm_shape(x.shape, x.dtype),
                          .x = x.data,
                          .scale = parameter(context.inputs[1]),
                          .mean = parameter(context.inputs[2]),
                          .variance = parameter(context.inputs[3]),
                          .mask = context.inputs[4].as<uint8_t>(),
                          .dx = dx.data,
                          .dz = dz.data,
                          .dscale = dscale.as<float>(),
                          .dbias = dbias.as<float>(),
                          .is_test = context.attributes().boolean("is_test"),
                          .epsilon = context.attributes().number("epsilon"),
                          .workspace = context.workspace};
  if (context.attributes().text("activation").empty()) norm.mask = nullptr;
  take_gradients(context, kGradients, &norm);
  return make_kernel([norm](Stream& stream) { norm_backward(norm, cuda::stream_of(stream)); });
}

}  // namespace

FLEET_KERNEL(cuda, batch_norm) {
  def.dtypes = cuda::kernel_types();
  def.layouts = forward_layouts;
  def.create = forward;
}

FLEET_KERNEL(cuda, batch_norm_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) {
    return backward(context, context.outputs[0], {}, context.outputs[1], context.outputs[2]);
  };
}

FLEET_KERNEL(cuda, batch_norm_activation_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) {
    const std::vector<Argument>& in = context.inputs;
    const Attributes& attributes = context.attributes();
    cuda::NormBackward norm{.shape = norm_shape(in[0].shape, in[0].dtype),
                            .x = in[0].data,
                            .scale = parameter(in[1]),
                            .mean = parameter(in[3]),
                            .variance = parameter(in[4]),
                            .bias = parameter(in[2]),
                            .activation = cuda::norm_activation(attributes.text("activation")),
                            .dx = context.outputs[0].data,
                            .dscale = context.outputs[1].as<float>(),
                            .dbias = context.outputs[2].as<float>(),
                            .is_test = attributes.boolean("is_test"),
                            .epsilon = attributes.number("epsilon"),
                            .workspace = context.workspace};
    take_gradients(context, kGradients, &norm);
    return make_kernel(
        [norm](Stream& stream) { norm_activation_backward(norm, cuda::stream_of(stream)); });
  };
}

FLEET_KERNEL(cuda, fused_bn_add_activation) {
  def.dtypes = cuda::kernel_types();
  def.layouts = forward_layouts;
  def.create = forward;
}

FLEET_KERNEL(cuda, fused_bn_add_activation_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) {
    return backward(context, context.outputs[0], context.outputs[1], context.outputs[2],
                    context.outputs[3]);
  };
}

}  // namespace fleet
