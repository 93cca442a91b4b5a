// Fully connected layers with cuBLASLt, which also adds the bias and sums its gradient.
#include <algorithm>

#include "backend/cuda/channels.h"
#include "backend/cuda/gemm.h"
#include "backend/cuda/layouts.h"

namespace fleet {
namespace {

using cuda::ChannelRows;
using cuda::Product;

struct Sizes {
  int64_t rows, in, out;
};

Sizes sizes_of(const Shape& x, const Shape& y) {
  const int64_t out = y[y.rank() - 1], rows = y.elements() / std::max<int64_t>(out, 1);
  return {rows, x.elements() / std::max<int64_t>(rows, 1), out};
}

// A bias whose type differs from the product's is added, or summed, by a separate kernel.
Product forward(const Sizes& s, DType dtype, bool bias) {
  return {.rows = s.rows,
          .columns = s.out,
          .depth = s.in,
          .transpose_b = true,
          .dtype = dtype,
          .epilogue = bias ? Product::kAddBias : Product::kNone};
}

Product weight_gradient(const Sizes& s, DType dtype, bool bias) {
  return {.rows = s.out,
          .columns = s.in,
          .depth = s.rows,
          .transpose_a = true,
          .dtype = dtype,
          .epilogue = bias ? Product::kSumA : Product::kNone};
}

ChannelRows rows_of(const Sizes& s, DType dtype) {
  return {.dtype = dtype, .rows = s.rows, .channels = s.out, .stored = s.out};
}

}  // namespace

FLEET_KERNEL(cuda, fc) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    const Sizes sizes = sizes_of(x.shape, query.output_var(0).shape);
    query.workspace(workspace_of(forward(sizes, x.dtype, query.has_input(2))));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument& y = context.outputs[0];
    const Sizes sizes = sizes_of(x.shape, y.shape);
    const bool fused = bias && bias.dtype == x.dtype;
    std::shared_ptr<Kernel> product = make_product(context.device, forward(sizes, x.dtype, fused),
                                                   {.a = x.data,
                                                    .b = weight.data,
                                                    .d = y.data,
                                                    .bias = bias.data,
                                                    .workspace = context.workspace});
    return add_bias_after(product, rows_of(sizes, y.dtype), y, fused ? Argument() : bias);
  };
}

FLEET_KERNEL(cuda, fc_data_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) { query.workspace(workspace_of(Product{})); };
  def.create = [](KernelContext& context) {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    const Sizes sizes = sizes_of(dx.shape, dy.shape);
    const Product product{
        .rows = sizes.rows, .columns = sizes.in, .depth = sizes.out, .dtype = dy.dtype};
    return make_product(
        context.device, product,
        {.a = dy.data, .b = weight.data, .d = dx.data, .workspace = context.workspace});
  };
}

FLEET_KERNEL(cuda, fc_weight_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var &x = query.input_var(0), &dy = query.input_var(1);
    query.workspace(
        workspace_of(weight_gradient(sizes_of(x.shape, dy.shape), x.dtype, query.has_output(1))));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &dy = context.inputs[1];
    const Argument &dweight = context.outputs[0], &dbias = context.outputs[1];
    const Sizes sizes = sizes_of(x.shape, dy.shape);
    const bool fused = dweight && dbias && dbias.dtype == dy.dtype;
    std::shared_ptr<Kernel> product;
    if (dweight) {
      product = make_product(context.device, weight_gradient(sizes, x.dtype, fused),
                             {.a = dy.data,
                              .b = x.data,
                              .d = dweight.data,
                              .bias = dbias.data,
                              .workspace = context.workspace});
    }
    return sum_rows_after(product, rows_of(sizes, dy.dtype), dy, fused ? Argument() : dbias,
                          context.workspace);
  };
}

}  // namespace fleet
