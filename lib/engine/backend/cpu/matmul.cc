#include "backend/cpu/dnnl_glue.h"

namespace fleet {
namespace {

// Several leading axes are merged for oneDNN, which costs nothing because arguments are plain. A
// transposed argument has its last two strides swapped.
dnnl::memory::desc matrix_desc(const Shape& shape, DType dtype, bool transposed) {
  const int rank = shape.rank();
  const int64_t rows = shape[rank - 2], columns = shape[rank - 1];
  const int64_t batch = shape.elements() / std::max<int64_t>(rows * columns, 1);
  const Shape matrices = transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns};
  const std::vector<int64_t> strides = transposed
                                           ? std::vector<int64_t>{rows * columns, 1, columns}
                                           : std::vector<int64_t>{rows * columns, columns, 1};
  if (batch > 1) return cpu::desc_of(matrices, dtype, Layout::blocked(matrices, strides, {}));
  const Shape matrix{matrices[1], matrices[2]};
  return cpu::desc_of(matrix, dtype, Layout::blocked(matrix, {strides[1], strides[2]}, {}));
}

dnnl::matmul::primitive_desc product(const Attributes& attributes, const Shape& x, const Shape& y,
                                     const Shape& z, DType dtype) {
  const dnnl::matmul::desc desc(matrix_desc(x, dtype, attributes.boolean("transpose_x")),
                                matrix_desc(y, dtype, attributes.boolean("transpose_y")),
                                matrix_desc(z, dtype, false));
  return {desc, cpu::user_scratchpad(), cpu::engine()};
}

}  // namespace

FLEET_KERNEL(cpu, matmul) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = [](LayoutQuery& query) {
    const Shape &x = query.input_var(0).shape, &y = query.input_var(1).shape;
    cpu::translated("matmul of " + x.text() + " and " + y.text(), [&] {
      query.workspace(cpu::scratchpad_bytes(
          product(query.attributes(), x, y, query.output_var(0).shape, query.input_var(0).dtype)));
    });
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &y = context.inputs[1], &z = context.outputs[0];
    return cpu::translated("matmul of " + x.shape.text() + " and " + y.shape.text(), [&] {
      auto kernel = std::make_unique<cpu::PrimitiveKernel>(
          product(context.attributes(), x.shape, y.shape, z.shape, x.dtype), context.workspace);
      kernel->bind(DNNL_ARG_SRC, x.data);
      kernel->bind(DNNL_ARG_WEIGHTS, y.data);
      kernel->bind(DNNL_ARG_DST, z.data);
      return kernel;
    });
  };
}

}  // namespace fleet
