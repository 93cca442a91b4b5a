#include <algorithm>

#include "backend/cuda/gemm.h"
#include "backend/cuda/layouts.h"

namespace fleet {
namespace {

cuda::Product product_of(const Attributes& attributes, const Shape& x, const Shape& z,
                         DType dtype) {
  const int rank = z.rank();
  const bool transpose_x = attributes.boolean("transpose_x");
  const int64_t rows = z[rank - 2], columns = z[rank - 1];
  return {.batch = z.elements() / std::max<int64_t>(rows * columns, 1),
          .rows = rows,
          .columns = columns,
          .depth = x[transpose_x ? rank - 2 : rank - 1],
          .transpose_a = transpose_x,
          .transpose_b = attributes.boolean("transpose_y"),
          .dtype = dtype};
}

}  // namespace

FLEET_KERNEL(cuda, matmul) {
  def.dtypes = cuda::kernel_types();
  def.layouts = [](LayoutQuery& query) {
    const Var& x = query.input_var(0);
    query.workspace(
        workspace_of(product_of(query.attributes(), x.shape, query.output_var(0).shape, x.dtype)));
  };
  def.create = [](KernelContext& context) {
    const Argument &x = context.inputs[0], &y = context.inputs[1], &z = context.outputs[0];
    return make_product(context.device, product_of(context.attributes(), x.shape, z.shape, x.dtype),
                        {.a = x.data, .b = y.data, .d = z.data, .workspace = context.workspace});
  };
}

}  // namespace fleet
