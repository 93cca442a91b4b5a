// Convolutions with the surrounding batch normalization: depthwise ones in our own kernels; others
// in one cuDNN graph if cuDNN has an engine for it, otherwise the convolution with cuDNN and the
// rest with our own kernels.
#include <algorithm>

#include "backend/cuda/convolution.h"
#include "backend/cuda/depthwise.h"
#include "backend/cuda/device.h"
#include "backend/cuda/norm.h"
#include "base/error.h"

namespace fleet {
namespace {

using cuda::NormShape;
using cuda::weight_shape;
using cuda::dnn::Pattern;
using Problem = cuda::ConvolutionProblem;

size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }
char* behind(void* workspace, size_t bytes) {
  return static_cast<char*>(workspace) + aligned(bytes);
}

NormShape image_norm_shape(const Shape& image, DType dtype) {
  return {.dtype = dtype, .rows = image[0] * image[2] * image[3], .channels = image[1]};
}

size_t bytes_of(const Shape& image, DType dtype) { return image.elements() * size_of(dtype); }

// The unfused path: the transformed image, if any, at the start of the workspace, followed by the
// memory that the kernels need one after another.
size_t plain_workspace(Device* device, const Pattern& pattern) {
  const cuda::dnn::Convolution& conv = pattern.convolution;
  size_t bytes = workspace_of(device, conv);
  if (pattern.sums_y) bytes = std::max(bytes, norm_workspace(image_norm_shape(conv.y, conv.dtype)));
  if (pattern.normalises_x) {
    bytes = std::max(bytes, norm_workspace(image_norm_shape(conv.x, conv.dtype)));
  }
  return bytes + (pattern.transforms_x ? aligned(bytes_of(conv.x, conv.dtype)) : 0);
}

// After a fused data gradient's own workspace: three unused values per channel.
size_t spare_bytes(const Pattern& pattern) {
  return pattern.normalises_x ? 3 * aligned(pattern.convolution.x[1] * sizeof(float)) : 0;
}

// channels: those of x. Patterns that compute with them require that memory has no more.
size_t workspace_for(Device* device, const Pattern& pattern, int64_t channels) {
  if ((pattern.transforms_x || pattern.normalises_x) && channels != pattern.convolution.x[1]) {
    throw Error(ErrorCode::kUnsupported, "padded channels are not supported",
                pattern.convolution.x.text(), "switch the pass fuse_resunit off");
  }
  if (!is_supported(device, pattern)) return plain_workspace(device, pattern);
  return aligned(workspace_of(device, pattern)) + spare_bytes(pattern);
}

// Whether our own kernels compute it. Throws if neither they nor cuDNN compute the activation.
bool takes_own_norm(const Problem& problem, const Attributes& attributes) {
  if (takes_depthwise_norm(problem.own())) return true;
  const std::string& activation = attributes.text("norm_activation");
  if (activation == "relu") return false;
  throw Error(ErrorCode::kUnsupported,
              "no convolution of this kind applies \"" + activation + "\" to its input",
              problem.conv().weight.text(), "switch the pass fuse_depthwise_norm off");
}

cuda::DepthwiseInput depthwise_input(const KernelContext& context, const Argument& factor,
                                     const Argument& constant) {
  return {.factor = factor.as<float>(),
          .constant = constant.as<float>(),
          .activation = cuda::norm_activation(context.attributes().text("norm_activation"))};
}

Pattern forward_pattern(const Problem& problem, bool transforms) {
  return {.convolution = problem.conv(), .transforms_x = transforms, .sums_y = true};
}

using Memory = std::vector<std::pair<int64_t, void*>>;

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
    if (takes_own_norm(problem, query.attributes())) {
      return query.workspace(depthwise_norm_workspace(problem.own()));
    }
    query.workspace(
        workspace_for(query.device(), forward_pattern(problem, query.has_input(2)), x.shape[1]));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1];
    const Argument &factor = context.inputs[2], &constant = context.inputs[3];
    const Argument &y = context.outputs[0], &sum = context.outputs[1];
    const Argument& squares = context.outputs[2];
    const Problem problem(Problem::Direction::kForward, context.attributes(), x.shape, weight.shape,
                          y.shape, x.dtype);
    const float* pivot = context.inputs[4].as<float>();
    if (takes_own_norm(problem, context.attributes())) {
      return make_kernel([=, conv = problem.own(), workspace = context.workspace,
                          input = depthwise_input(context, factor, constant)](Stream& stream) {
        depthwise_sums_forward(conv, x.data, weight.data, input, pivot, y.data, sum.as<float>(),
                               squares.as<float>(), workspace, cuda::stream_of(stream));
      });
    }
    const Pattern pattern = forward_pattern(problem, static_cast<bool>(factor));
    if (!pivot && is_supported(&context.device, pattern)) {
      Memory memory = {{cuda::dnn::kConvX, x.data},
                       {cuda::dnn::kConvWeight, weight.data},
                       {cuda::dnn::kConvY, y.data},
                       {cuda::dnn::kPatternSum, sum.data},
                       {cuda::dnn::kPatternSquares, squares.data}};
      if (factor) memory.emplace_back(cuda::dnn::kPatternScale, factor.data);
      if (factor) memory.emplace_back(cuda::dnn::kPatternBias, constant.data);
      return make_kernel(context.device, pattern, memory, context.workspace);
    }
    const NormShape image = image_norm_shape(problem.conv().x, x.dtype),
                    result = image_norm_shape(y.shape, y.dtype);
    void* from = factor ? context.workspace : x.data;
    void* workspace =
        factor ? behind(context.workspace, bytes_of(x.shape, x.dtype)) : context.workspace;
    std::shared_ptr<Kernel> product =
        make_kernel(context.device, problem.conv(), from, weight.data, y.data, nullptr, workspace);
    return make_kernel([=](Stream& stream) {
      const cudaStream_t on = cuda::stream_of(stream);
      if (factor) scale_bias_relu(image, x.data, factor.data, constant.data, from, on);
      product->run(stream);
      sum_squares(result, y.data, pivot, sum.as<float>(), squares.as<float>(), workspace, on);
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
    if (takes_own_norm(problem, query.attributes())) {
      return query.workspace(depthwise_norm_workspace(problem.own()));
    }
    query.workspace(workspace_for(
        query.device(), {.convolution = problem.conv(), .transforms_x = true}, x.shape[1]));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &factor = context.inputs[2], &constant = context.inputs[3];
    const Argument& dweight = context.outputs[0];
    const Problem problem(Problem::Direction::kWeight, context.attributes(), x.shape, dweight.shape,
                          dy.shape, x.dtype);
    if (takes_own_norm(problem, context.attributes())) {
      return make_kernel([=, conv = problem.own(), workspace = context.workspace,
                          input = depthwise_input(context, factor, constant)](Stream& stream) {
        depthwise_norm_weight_grad(conv, x.data, dy.data, input, dweight.data, workspace,
                                   cuda::stream_of(stream));
      });
    }
    const Pattern pattern{.convolution = problem.conv(), .transforms_x = true};
    if (is_supported(&context.device, pattern)) {
      return make_kernel(context.device, pattern,
                         Memory{{cuda::dnn::kConvX, x.data},
                                {cuda::dnn::kConvWeight, dweight.data},
                                {cuda::dnn::kConvY, dy.data},
                                {cuda::dnn::kPatternScale, factor.data},
                                {cuda::dnn::kPatternBias, constant.data}},
                         context.workspace);
    }
    const NormShape image = image_norm_shape(x.shape, x.dtype);
    void* transformed = context.workspace;
    std::shared_ptr<Kernel> product =
        make_kernel(context.device, problem.conv(), transformed, dweight.data, dy.data, nullptr,
                    behind(transformed, bytes_of(x.shape, x.dtype)));
    return make_kernel([=](Stream& stream) {
      scale_bias_relu(image, x.data, factor.data, constant.data, transformed,
                      cuda::stream_of(stream));
      product->run(stream);
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
    if (takes_own_norm(problem, query.attributes())) {
      return query.workspace(depthwise_norm_workspace(problem.own()));
    }
    query.workspace(workspace_for(
        query.device(), {.convolution = problem.conv(), .normalises_x = true}, x.shape[1]));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &x = context.inputs[2];
    const std::vector<Argument>& in = context.inputs;
    const Argument &dz = context.outputs[0], &dscale = context.outputs[1];
    const Argument& dbias = context.outputs[2];
    const Problem problem(Problem::Direction::kData, context.attributes(), x.shape, weight.shape,
                          dy.shape, dy.dtype);
    if (takes_own_norm(problem, context.attributes())) {
      const cuda::DepthwiseNormGradient gradient{
          .x = x.data,
          .mean = in[3].as<float>(),
          .inverse = in[4].as<float>(),
          .scale = in[5].as<float>(),
          .bias = in[6].as<float>(),
          .activation = cuda::norm_activation(context.attributes().text("norm_activation")),
          .dz = dz.data,
          .dscale = dscale.as<float>(),
          .dbias = dbias.as<float>()};
      return make_kernel([=, conv = problem.own(), workspace = context.workspace](Stream& stream) {
        depthwise_norm_data_grad(conv, weight.data, dy.data, gradient, workspace,
                                 cuda::stream_of(stream));
      });
    }
    const Pattern pattern{.convolution = problem.conv(), .normalises_x = true};
    if (is_supported(&context.device, pattern)) {
      char* spare = behind(context.workspace, workspace_of(&context.device, pattern));
      const size_t step = spare_bytes(pattern) / 3;
      return make_kernel(context.device, pattern,
                         Memory{{cuda::dnn::kConvX, dz.data},
                                {cuda::dnn::kConvWeight, weight.data},
                                {cuda::dnn::kConvY, dy.data},
                                {cuda::dnn::kPatternImage, x.data},
                                {cuda::dnn::kPatternMean, in[3].data},
                                {cuda::dnn::kPatternInverse, in[4].data},
                                {cuda::dnn::kPatternScale, in[5].data},
                                {cuda::dnn::kPatternBias, in[6].data},
                                {cuda::dnn::kPatternDScale, dscale.data},
                                {cuda::dnn::kPatternDBias, dbias.data},
                                {cuda::dnn::kPatternScaleDy, spare},
                                {cuda::dnn::kPatternScaleX, spare + step},
                                {cuda::dnn::kPatternConstant, spare + 2 * step}},
                         context.workspace);
    }
    std::shared_ptr<Kernel> product = make_kernel(context.device, problem.conv(), dz.data,
                                                  weight.data, dy.data, nullptr, context.workspace);
    const cuda::ReluNormGradient rest{.shape = image_norm_shape(x.shape, x.dtype),
                                      .x = x.data,
                                      .mean = in[3].as<float>(),
                                      .inverse = in[4].as<float>(),
                                      .scale = in[5].as<float>(),
                                      .bias = in[6].as<float>(),
                                      .dz = dz.data,
                                      .dscale = dscale.as<float>(),
                                      .dbias = dbias.as<float>(),
                                      .workspace = context.workspace};
    return make_kernel([product, rest](Stream& stream) {
      product->run(stream);
      relu_norm_gradient(rest, cuda::stream_of(stream));
    });
  };
}

}  // namespace fleet
