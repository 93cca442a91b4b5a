// Convolutions with the surrounding batch normalization, in our own kernels: depthwise ones, and
// the forward pass of those of 1 x 1, which no pass inserts yet.
#include "backend/cuda/convolution.h"
#include "backend/cuda/depthwise.h"
#include "backend/cuda/device.h"
#include "backend/cuda/norm.h"
#include "backend/cuda/pointwise.h"
#include "base/error.h"

namespace fleet {
namespace {

using cuda::weight_shape;
using Problem = cuda::ConvolutionProblem;

// The activation of x, which a factor and a constant transform.
cuda::NormActivation activation_of(const Attributes& attributes, bool transforms) {
  if (!transforms) return cuda::NormActivation::kNone;
  return cuda::norm_activation(attributes.text("norm_activation"));
}

// Throws if no kernel computes it.
void lay_out(LayoutQuery& query, const Problem& problem) {
  if (!takes_depthwise_norm(problem.own())) {
    throw Error(ErrorCode::kUnsupported,
                "no convolution of this kind includes a batch normalization",
                problem.conv().weight.text(), "switch the pass fuse_depthwise_norm off");
  }
  query.workspace(depthwise_norm_workspace(problem.own()));
}

cuda::DepthwiseInput depthwise_input(const KernelContext& context, const Argument& factor,
                                     const Argument& constant) {
  return {.factor = factor.as<float>(),
          .constant = constant.as<float>(),
          .activation = cuda::norm_activation(context.attributes().text("norm_activation"))};
}

}  // namespace

FLEET_KERNEL(cuda, conv2d_sums) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &weight = query.input_var(1), &y = query.output_var(0);
    const Problem problem(Problem::Direction::kForward, query.attributes(), x.shape, weight.shape,
                          y.shape, x.dtype);
    query.need(0, problem.x());
    query.need(1, problem.weight());
    query.give(0, problem.y());
    const auto activation = activation_of(query.attributes(), query.has_input(2));
    if (takes_pointwise(query.device(), problem.own(), activation)) {
      return query.workspace(pointwise_workspace(problem.own()));
    }
    lay_out(query, problem);
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1];
    const Argument &factor = context.inputs[2], &constant = context.inputs[3];
    const Argument &y = context.outputs[0], &sum = context.outputs[1];
    const Argument& squares = context.outputs[2];
    const Problem problem(Problem::Direction::kForward, context.attributes(), x.shape, weight.shape,
                          y.shape, x.dtype);
    const float* pivot = context.inputs[4].as<float>();
    const auto activation = activation_of(context.attributes(), static_cast<bool>(factor));
    if (takes_pointwise(&context.device, problem.own(), activation)) {
      const cuda::PointwiseInput input{factor.as<float>(), constant.as<float>(), activation};
      return make_kernel([=, conv = problem.own(), workspace = context.workspace,
                          &device = context.device](Stream& stream) {
        pointwise_sums_forward(device, conv, x.data, weight.data, input, pivot, y.data,
                               sum.as<float>(), squares.as<float>(), workspace,
                               cuda::stream_of(stream));
      });
    }
    return make_kernel([=, conv = problem.own(), workspace = context.workspace,
                        input = depthwise_input(context, factor, constant)](Stream& stream) {
      depthwise_sums_forward(conv, x.data, weight.data, input, pivot, y.data, sum.as<float>(),
                             squares.as<float>(), workspace, cuda::stream_of(stream));
    });
  };
}

FLEET_KERNEL(cuda, conv2d_sums_weight_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &dy = query.input_var(1);
    const Problem problem(Problem::Direction::kWeight, query.attributes(), x.shape,
                          weight_shape(query.attributes(), x.shape, dy.shape), dy.shape, x.dtype);
    query.need(0, problem.x());
    query.need(1, problem.y());
    query.give(0, problem.weight());
    lay_out(query, problem);
  };
  def.create = [](KernelContext& context) {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument& dweight = context.outputs[0];
    const Problem problem(Problem::Direction::kWeight, context.attributes(), x.shape, dweight.shape,
                          dy.shape, x.dtype);
    return make_kernel(
        [=, conv = problem.own(), workspace = context.workspace,
         input = depthwise_input(context, context.inputs[2], context.inputs[3])](Stream& stream) {
          depthwise_norm_weight_grad(conv, x.data, dy.data, input, dweight.data, workspace,
                                     cuda::stream_of(stream));
        });
  };
}

FLEET_KERNEL(cuda, conv2d_relu_norm_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &weight = query.input_var(0), &dy = query.input_var(1), &x = query.input_var(2);
    const Problem problem(Problem::Direction::kData, query.attributes(), x.shape, weight.shape,
                          dy.shape, dy.dtype);
    query.need(0, problem.weight());
    query.need(1, problem.y());
    query.need(2, problem.x());
    query.give(0, problem.x());
    lay_out(query, problem);
  };
  def.create = [](KernelContext& context) {
    const std::vector<Argument>&in = context.inputs, &out = context.outputs;
    const Argument &weight = in[0], &dy = in[1], &x = in[2];
    const Problem problem(Problem::Direction::kData, context.attributes(), x.shape, weight.shape,
                          dy.shape, dy.dtype);
    const cuda::DepthwiseNormGradient gradient{
        .x = x.data,
        .mean = in[3].as<float>(),
        .inverse = in[4].as<float>(),
        .scale = in[5].as<float>(),
        .bias = in[6].as<float>(),
        .activation = cuda::norm_activation(context.attributes().text("norm_activation")),
        .dz = out[0].data,
        .dscale = out[1].as<float>(),
        .dbias = out[2].as<float>()};
    return make_kernel([=, conv = problem.own(), workspace = context.workspace](Stream& stream) {
      depthwise_norm_data_grad(conv, weight.data, dy.data, gradient, workspace,
                               cuda::stream_of(stream));
    });
  };
}

}  // namespace fleet
