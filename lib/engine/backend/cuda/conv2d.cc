// Convolutions with cuDNN; depthwise ones with our own kernels, and patches as products. Where both
// sides of an image are padded differently, cuDNN gets a padded copy.
#include <algorithm>

#include "backend/cuda/channels.h"
#include "backend/cuda/convolution.h"
#include "backend/cuda/device.h"
#include "backend/cuda/padded_image.h"
#include "backend/cuda/patch_convolution.h"

namespace fleet {
namespace {

using Direction = cuda::dnn::Convolution::Direction;

using Problem = cuda::ConvolutionProblem;
using cuda::weight_shape;

void forward_layouts(LayoutQuery& query) {
  const Var &x = query.input_var(0), &weight = query.input_var(1), &y = query.output_var(0);
  const Problem problem(Direction::kForward, query.attributes(), x.shape, weight.shape, y.shape,
                        x.dtype);
  query.need(0, problem.x());
  query.need(1, problem.weight());
  query.give(0, problem.y());
  if (problem.takes_own(query.attributes())) return;
  if (problem.takes_patches()) return query.workspace(patch_workspace(problem));
  const auto fused = query.has_input(2)
                         ? problem.with_bias(query.device(), query.input_var(2).dtype)
                         : std::nullopt;
  query.workspace(padded_image_bytes(problem) +
                  workspace_of(query.device(), fused ? *fused : problem.conv()));
}

void weight_layouts(LayoutQuery& query) {
  const Var &x = query.input_var(0), &dy = query.input_var(1);
  const Shape weight = weight_shape(query.attributes(), x.shape, dy.shape);
  const Problem problem(Direction::kWeight, query.attributes(), x.shape, weight, dy.shape, x.dtype);
  query.need(0, query.has_output(0) || !query.input(0) ? problem.x() : *query.input(0));
  query.need(1, problem.y());
  query.give(0, problem.weight());
  if (problem.takes_own(query.attributes())) {
    query.workspace(depthwise_weight_grad_workspace(problem.own()));
    return;
  }
  if (problem.takes_patches()) return query.workspace(patch_workspace(problem));
  const size_t product = query.has_output(0) ? workspace_of(query.device(), problem.conv()) : 0;
  const size_t sums = query.has_output(1) ? sum_rows_workspace(problem.y_rows()) : 0;
  query.workspace(padded_image_bytes(problem) + std::max(product, sums));
}

void data_layouts(LayoutQuery& query) {
  const Var &weight = query.input_var(0), &dy = query.input_var(1), &dx = query.output_var(0);
  const Problem problem(Direction::kData, query.attributes(), dx.shape, weight.shape, dy.shape,
                        dy.dtype);
  query.need(0, problem.weight());
  query.need(1, problem.y());
  query.give(0, problem.x());
  if (query.has_input(2)) query.need(2, problem.x());
  if (problem.takes_own(query.attributes())) return;
  if (problem.takes_patches()) return query.workspace(patch_workspace(problem));
  query.workspace(padded_image_bytes(problem) + workspace_of(query.device(), problem.conv()));
}

}  // namespace

FLEET_KERNEL(cuda, conv2d) {
  def.dtypes = cuda::kernel_types();
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    const Problem problem(Direction::kForward, context.attributes(), x.shape, weight.shape, y.shape,
                          x.dtype);
    if (problem.takes_own(context.attributes())) {
      const bool apart = bias && bias.dtype != x.dtype;  // added by a separate kernel
      return make_kernel([=, conv = problem.own(), rows = problem.y_rows()](Stream& stream) {
        depthwise_forward(conv, x.data, weight.data, apart ? nullptr : bias.data, y.data,
                          cuda::stream_of(stream));
        if (apart) add_bias(rows, y.data, bias.data, bias.dtype, cuda::stream_of(stream));
      });
    }
    if (problem.takes_patches()) return make_patch_forward(context, problem);
    const auto fused = bias ? problem.with_bias(&context.device, bias.dtype) : std::nullopt;
    const cuda::PaddedImage image(problem, x.data, context.workspace);
    std::shared_ptr<Kernel> product =
        make_kernel(context.device, fused ? *fused : problem.conv(), image.data(), weight.data,
                    y.data, bias.data, image.rest());
    return add_bias_after(image.filled(product), problem.y_rows(), y, fused ? Argument() : bias);
  };
}

FLEET_KERNEL(cuda, conv2d_weight_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = weight_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    const Shape weight = weight_shape(context.attributes(), x.shape, dy.shape);
    const Problem problem(Direction::kWeight, context.attributes(), x.shape, weight, dy.shape,
                          x.dtype);
    void* workspace = context.workspace;
    if (problem.takes_own(context.attributes())) {
      return make_kernel([=, conv = problem.own()](Stream& stream) {
        depthwise_weight_grad(conv, x.data, dy.data, dweight.data, dbias.data, workspace,
                              cuda::stream_of(stream));
      });
    }
    if (problem.takes_patches()) return make_patch_weight_grad(context, problem);
    const cuda::PaddedImage image(problem, x.data, workspace);
    std::shared_ptr<Kernel> product;
    if (dweight) {
      product = make_kernel(context.device, problem.conv(), image.data(), dweight.data, dy.data,
                            nullptr, image.rest());
    }
    return sum_rows_after(image.filled(product), problem.y_rows(), dy, dbias, image.rest());
  };
}

FLEET_KERNEL(cuda, conv2d_data_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = data_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    const Problem problem(Direction::kData, context.attributes(), dx.shape, weight.shape, dy.shape,
                          dy.dtype);
    if (problem.takes_own(context.attributes())) {
      return make_kernel([=, conv = problem.own(), x = context.inputs[2]](Stream& stream) {
        depthwise_data_grad(conv, weight.data, dy.data, x.data, dx.data, cuda::stream_of(stream));
      });
    }
    if (problem.takes_patches()) return make_patch_data_grad(context, problem);
    const cuda::PaddedImage image(problem, dx.data, context.workspace);
    return image.cropped(make_kernel(context.device, problem.conv(), image.data(), weight.data,
                                     dy.data, nullptr, image.rest()));
  };
}

}  // namespace fleet
