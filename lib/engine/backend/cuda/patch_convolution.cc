#include "backend/cuda/patch_convolution.h"

#include <algorithm>

#include "backend/cuda/copies.h"
#include "backend/cuda/device.h"
#include "backend/cuda/gemm.h"

namespace fleet::cuda {
namespace {

// patches[count, depth], depth = kernel height x kernel width x channels; y[count, filters].
struct Patches {
  DType dtype;
  int64_t count, depth, filters;
  size_t bytes;  // in the workspace, whose rest is the product's

  explicit Patches(const Convolution& c)
      : dtype(c.dtype),
        count(c.batch * c.out[0] * c.out[1]),
        depth(c.window.kernel[0] * c.window.kernel[1] * c.channels),
        filters(c.filters) {
    constexpr size_t kAlignment = 256;
    bytes = static_cast<size_t>(count * depth) * size_of(dtype);
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  Product forward(bool bias) const {
    return {.rows = count,
            .columns = filters,
            .depth = depth,
            .transpose_b = true,
            .dtype = dtype,
            .epilogue = bias ? Product::kAddBias : Product::kNone};
  }
  Product weight_gradient(bool bias) const {
    return {.rows = filters,
            .columns = depth,
            .depth = count,
            .transpose_a = true,
            .dtype = dtype,
            .epilogue = bias ? Product::kSumA : Product::kNone};
  }
  Product data_gradient() const {
    return {.rows = count, .columns = depth, .depth = filters, .dtype = dtype};
  }
};

// Between the image, whose pixels may have padded channels, and the patches.
Copy copy_between(const Convolution& c, void* image, void* patches, bool gathers) {
  const int64_t height = c.window.kernel[0], width = c.window.kernel[1];
  const int64_t line = c.in[1] * c.in_pixel, depth = height * width * c.channels;
  std::vector<CopyAxis> axes = {{c.batch, c.in[0] * line, c.out[0] * c.out[1] * depth},
                                {c.out[0], height * line, c.out[1] * depth},
                                {c.out[1], width * c.in_pixel, depth},
                                {height, line, width * c.channels},
                                {width, c.in_pixel, c.channels},
                                {c.channels, 1, 1}};
  if (gathers) return {axes, size_of(c.dtype), image, patches};
  for (CopyAxis& axis : axes) std::swap(axis.from, axis.to);
  return {axes, size_of(c.dtype), patches, image};
}

// The problem for our own kernels counts stored channels; this one those that there are.
Convolution without_padding(const ConvolutionProblem& problem) {
  Convolution c = problem.own();
  c.channels = problem.channels();
  return c;
}

void* rest_of(void* workspace, const Patches& patches) {
  return static_cast<std::byte*>(workspace) + patches.bytes;
}

}  // namespace

size_t patch_workspace(const ConvolutionProblem& problem) {
  const Patches patches(without_padding(problem));
  const size_t product =
      std::max({workspace_of(patches.forward(true)), workspace_of(patches.weight_gradient(true)),
                workspace_of(patches.data_gradient())});
  return patches.bytes + std::max(product, sum_rows_workspace(problem.y_rows()));
}

std::unique_ptr<Kernel> make_patch_forward(KernelContext& context,
                                           const ConvolutionProblem& problem) {
  const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
  const Argument& y = context.outputs[0];
  const Convolution c = without_padding(problem);
  const Patches patches(c);
  const bool fused = bias && bias.dtype == x.dtype;
  std::shared_ptr<Kernel> product =
      make_product(context.device, patches.forward(fused),
                   {.a = context.workspace,
                    .b = weight.data,
                    .d = y.data,
                    .bias = fused ? bias.data : nullptr,
                    .workspace = rest_of(context.workspace, patches)});
  std::shared_ptr<Kernel> all = make_kernel(
      [product, gather = copy_between(c, x.data, context.workspace, true)](Stream& stream) {
        gather.run(stream_of(stream));
        product->run(stream);
      });
  return add_bias_after(all, problem.y_rows(), y, fused ? Argument() : bias);
}

std::unique_ptr<Kernel> make_patch_weight_grad(KernelContext& context,
                                               const ConvolutionProblem& problem) {
  const Argument &x = context.inputs[0], &dy = context.inputs[1];
  const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
  const Convolution c = without_padding(problem);
  const Patches patches(c);
  void* rest = rest_of(context.workspace, patches);
  const bool fused = dweight && dbias && dbias.dtype == dy.dtype;
  std::shared_ptr<Kernel> all;
  if (dweight) {
    std::shared_ptr<Kernel> product = make_product(context.device, patches.weight_gradient(fused),
                                                   {.a = dy.data,
                                                    .b = context.workspace,
                                                    .d = dweight.data,
                                                    .bias = fused ? dbias.data : nullptr,
                                                    .workspace = rest});
    all = make_kernel(
        [product, gather = copy_between(c, x.data, context.workspace, true)](Stream& stream) {
          gather.run(stream_of(stream));
          product->run(stream);
        });
  }
  return sum_rows_after(all, problem.y_rows(), dy, fused ? Argument() : dbias, rest);
}

std::unique_ptr<Kernel> make_patch_data_grad(KernelContext& context,
                                             const ConvolutionProblem& problem) {
  const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
  const Convolution c = without_padding(problem);
  const Patches patches(c);
  std::shared_ptr<Kernel> product =
      make_product(context.device, patches.data_gradient(),
                   {.a = dy.data,
                    .b = weight.data,
                    .d = context.workspace,
                    .workspace = rest_of(context.workspace, patches)});
  return make_kernel(
      [product, scatter = copy_between(c, dx.data, context.workspace, false)](Stream& stream) {
        product->run(stream);
        scatter.run(stream_of(stream));
      });
}

}  // namespace fleet::cuda
