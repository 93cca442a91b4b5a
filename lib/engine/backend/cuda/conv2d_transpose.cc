// Uses the data and weight gradients of a convolution whose image is this operation's output: with
// cuDNN, or for a single image with our own kernel.
#include <algorithm>

#include "backend/cuda/channels.h"
#include "backend/cuda/convolution.h"
#include "backend/cuda/device.h"

namespace fleet {
namespace {

using cuda::channels_last;
using cuda::rows_of;
using cuda::weight_shape;
using Direction = cuda::dnn::Convolution::Direction;

// small: the input of the transposed convolution, y of the convolution; large: its output.
cuda::dnn::Convolution convolution_of(Direction direction, const Attributes& attributes,
                                      const Shape& large, const Shape& weight, const Shape& small,
                                      DType dtype) {
  return {.direction = direction,
          .window = window_of(attributes, weight[2], weight[3]),
          .x = large,
          .weight = weight,
          .y = small,
          .dtype = dtype};
}

// use_cudnn=false always selects our own kernel.
bool is_own(const Attributes& attributes, const cuda::dnn::Convolution& conv) {
  return !attributes.boolean("use_cudnn") || prefers_own_transposed(cuda::own_convolution_of(conv));
}

}  // namespace

FLEET_KERNEL(cuda, conv2d_transpose) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &weight = query.input_var(1), &y = query.output_var(0);
    query.need(0, channels_last(x.shape));
    query.need(1, channels_last(weight.shape));
    query.give(0, channels_last(y.shape));
    const auto conv = convolution_of(Direction::kData, query.attributes(), y.shape, weight.shape,
                                     x.shape, x.dtype);
    if (!is_own(query.attributes(), conv)) query.workspace(workspace_of(query.device(), conv));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    const auto conv = convolution_of(Direction::kData, context.attributes(), y.shape, weight.shape,
                                     x.shape, x.dtype);
    std::shared_ptr<Kernel> product;
    if (is_own(context.attributes(), conv)) {
      product = make_kernel([own = cuda::own_convolution_of(conv), x, weight, y](Stream& stream) {
        transposed_forward(own, x.data, weight.data, nullptr, y.data, cuda::stream_of(stream));
      });
    } else {
      product = make_kernel(context.device, conv, y.data, weight.data, x.data, nullptr,
                            context.workspace);
    }
    return add_bias_after(product, rows_of(y.shape, y.dtype), y, bias);
  };
}

FLEET_KERNEL(cuda, conv2d_transpose_weight_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &dy = query.input_var(1);
    const Shape weight = weight_shape(query.attributes(), dy.shape, x.shape);
    query.need(0, channels_last(x.shape));
    query.need(1, channels_last(dy.shape));
    query.give(0, channels_last(weight));
    const auto conv =
        convolution_of(Direction::kWeight, query.attributes(), dy.shape, weight, x.shape, x.dtype);
    const size_t product = query.has_output(0) ? workspace_of(query.device(), conv) : 0;
    const size_t sums = query.has_output(1) ? sum_rows_workspace(rows_of(dy.shape, dy.dtype)) : 0;
    query.workspace(std::max(product, sums));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    const Shape weight = weight_shape(context.attributes(), dy.shape, x.shape);
    const auto conv = convolution_of(Direction::kWeight, context.attributes(), dy.shape, weight,
                                     x.shape, x.dtype);
    void* workspace = context.workspace;
    std::shared_ptr<Kernel> product;
    if (dweight) {
      product =
          make_kernel(context.device, conv, dy.data, dweight.data, x.data, nullptr, workspace);
    }
    return sum_rows_after(product, rows_of(dy.shape, dy.dtype), dy, dbias, workspace);
  };
}

}  // namespace fleet
