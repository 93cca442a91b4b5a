// fc_gelu and fc_gelu_data_grad with cuBLASLt, whose epilogues compute gelu.
#include <algorithm>

#include "backend/cuda/gemm.h"
#include "backend/cuda/layouts.h"

namespace fleet {
namespace {

using cuda::Product;

Product fc_gelu_product(const Shape& weight, const Shape& y, DType dtype) {
  return {.rows = y.elements() / std::max<int64_t>(weight[0], 1),
          .columns = weight[0],
          .depth = weight[1],
          .transpose_b = true,
          .dtype = dtype,
          .epilogue = Product::kGelu};
}
Product fc_gelu_data_grad_product(const Shape& weight, const Shape& dx, DType dtype) {
  return {.rows = dx.elements() / std::max<int64_t>(weight[1], 1),
          .columns = weight[1],
          .depth = weight[0],
          .dtype = dtype,
          .epilogue = Product::kGeluGradient};
}

}  // namespace

FLEET_KERNEL(cuda, fc_gelu) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(workspace_of(fc_gelu_product(
        query.input_var(1).shape, query.output_var(0).shape, query.input_var(0).dtype)));
  };
  def.create = [](KernelContext& context) {
    const Argument &x = context.inputs[0], &weight = context.inputs[1], &bias = context.inputs[2];
    const Argument &y = context.outputs[0], &before = context.outputs[1];
    return make_product(context.device, fc_gelu_product(weight.shape, y.shape, x.dtype),
                        {.a = x.data,
                         .b = weight.data,
                         .d = y.data,
                         .bias = bias.data,
                         .bias_type = bias.dtype,
                         .before = before.data,
                         .workspace = context.workspace});
  };
}

FLEET_KERNEL(cuda, fc_gelu_data_grad) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(workspace_of(fc_gelu_data_grad_product(
        query.input_var(0).shape, query.output_var(0).shape, query.input_var(1).dtype)));
  };
  def.create = [](KernelContext& context) {
    const Argument &weight = context.inputs[0], &dy = context.inputs[1], &dx = context.outputs[0];
    return make_product(context.device, fc_gelu_data_grad_product(weight.shape, dx.shape, dy.dtype),
                        {.a = dy.data,
                         .b = weight.data,
                         .d = dx.data,
                         .before = context.inputs[2].data,
                         .workspace = context.workspace});
  };
}

}  // namespace fleet
