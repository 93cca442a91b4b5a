// Batch normalization in parts (ops/batch_norm_sums.cc), with the kernels of the whole operation.
#include "backend/cuda/device.h"
#include "backend/cuda/layouts.h"
#include "backend/cuda/norm.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

using cuda::norm_shape;

constexpr int kGradients = 4;  // index of the first dy of batch_norm_gradient_sums

std::unique_ptr<Kernel> sums(KernelContext& context) {
  const Argument &x = context.inputs[0], mean = context.inputs[1];
  const Argument sum = context.outputs[0], squares = context.outputs[1];
  const cuda::NormShape shape = norm_shape(x.shape, x.dtype);
  const void* data = x.data;
  void* workspace = context.workspace;
  return make_kernel([=](Stream& stream) {
    cuda::sum_squares(shape, data, mean.as<float>(), sum.as<float>(), squares.as<float>(),
                      workspace, cuda::stream_of(stream));
  });
}

// As in inference: with given statistics.
std::unique_ptr<Kernel> apply(KernelContext& context) {
  const std::vector<Argument>& in = context.inputs;
  const cuda::NormForward norm{
      .shape = norm_shape(in[0].shape, in[0].dtype),
      .x = in[0].data,
      .scale = in[1].as<float>(),
      .bias = in[2].as<float>(),
      .mean = in[3].as<float>(),
      .variance = in[4].as<float>(),
      .z = in[5].data,
      .y = context.outputs[0].data,
      .mask = context.outputs[1].as<uint8_t>(),
      .activation = cuda::norm_activation(context.attributes().text("activation")),
      .is_test = true,
      .epsilon = context.attributes().number("epsilon")};
  return make_kernel([norm](Stream& stream) { norm_forward(norm, cuda::stream_of(stream)); });
}

std::unique_ptr<Kernel> gradient_sums(KernelContext& context) {
  const std::vector<Argument>&in = context.inputs, &out = context.outputs;
  cuda::NormBackward norm{.shape = norm_shape(in[0].shape, in[0].dtype),
                          .x = in[0].data,
                          .mean = in[1].as<float>(),
                          .variance = in[2].as<float>(),
                          .mask = in[3].as<uint8_t>(),
                          .dz = out[4].data,
                          .dscale = out[2].as<float>(),
                          .dbias = out[3].as<float>(),
                          .product = out[0].as<float>(),
                          .sum = out[1].as<float>(),
                          .epsilon = context.attributes().number("epsilon"),
                          .workspace = context.workspace};
  take_gradients(context, kGradients, &norm);
  return make_kernel([norm](Stream& stream) { norm_backward(norm, cuda::stream_of(stream)); });
}

}  // namespace

FLEET_KERNEL(cuda, batch_norm_sums) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    query.need(0, cuda::rows_of_channels(x.shape));
    query.workspace(norm_workspace(norm_shape(x.shape, x.dtype)));
  };
  def.create = sums;
}

FLEET_KERNEL(cuda, batch_norm_apply) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    const Layout layout = cuda::rows_of_channels(x.shape);
    query.need(0, layout);
    if (query.has_input(5)) query.need(5, layout);
    query.give(0, layout);
    if (query.has_output(1)) {
      query.give(1, cuda::norm_mask_layout(norm_shape(x.shape, x.dtype)));
    }
  };
  def.create = apply;
}

FLEET_KERNEL(cuda, batch_norm_gradient_sums) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    const Layout layout = cuda::rows_of_channels(x.shape);
    query.need(0, layout);
    if (query.has_input(3)) query.need(3, *query.input(3));
    for (int i = kGradients; i < query.input_count(); ++i) query.need(i, layout);
    if (query.has_output(4)) query.give(4, layout);
    query.workspace(norm_workspace(norm_shape(x.shape, x.dtype)));
  };
  def.create = gradient_sums;
}

}  // namespace fleet
