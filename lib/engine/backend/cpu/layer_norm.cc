#include "backend/cpu/row_norm.h"

namespace fleet {
namespace {

// adds: x + residual is input 0 + input 1, and output 1; the other arguments move up by one.
template <bool adds, typename T>
std::unique_ptr<Kernel> make_layer_norm(KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const int64_t axis = adds ? shape.rank() - 1 : context.attributes().integer("begin_norm_axis");
  int64_t rows = 1;
  for (int d = 0; d < axis; ++d) rows *= shape[d];
  const int64_t size = shape.elements() / rows;
  const int moved = adds ? 1 : 0;
  const T* x = context.inputs[0].as<const T>();
  const T* residual = adds ? context.inputs[1].as<const T>() : nullptr;
  const cpu::RowParameters scale(context.inputs[moved + 1], size, 1);
  const cpu::RowParameters bias(context.inputs[moved + 2], size, 0);
  T* y = context.outputs[0].as<T>();
  T* sum = adds ? context.outputs[1].as<T>() : nullptr;
  float* means = context.outputs[moved + 1].as<float>();
  float* variances = context.outputs[moved + 2].as<float>();
  const auto epsilon = static_cast<float>(context.attributes().number("epsilon"));
  return make_kernel([=](Stream&) {
    cpu::for_norm_rows(rows, size, [&](int64_t row) {
      const int64_t at = row * size;
      if constexpr (adds) cpu::add_row(x + at, residual + at, sum + at, size);
      float mean, variance;
      cpu::layer_norm_row((adds ? sum : x) + at, scale.values(), bias.values(), y + at, size,
                          epsilon, &mean, &variance);
      if (means) means[row] = mean;
      if (variances) variances[row] = variance;
    });
  });
}

template <bool adds>
void define_layer_norm(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_layer_norm<adds, T>(context); });
  };
}

}  // namespace

FLEET_KERNEL(cpu, layer_norm) { define_layer_norm<false>(def); }
FLEET_KERNEL(cpu, add_layer_norm) { define_layer_norm<true>(def); }

FLEET_KERNEL(cpu, layer_norm_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cpu::row_norm_workspace(query.input_var(0).shape.elements() /
                                            query.input_var(2).shape.elements()));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const int64_t rows = context.inputs[2].shape.elements();
      const int64_t size = context.inputs[0].shape.elements() / rows;
      const cpu::RowParameters scale(context.inputs[1], size, 1);
      const cpu::RowNormGradient<true, T> gradient{
          .x = context.inputs[0].as<const T>(),
          .dy = context.inputs[4].as<const T>(),
          .dsum = context.inputs[5].as<const T>(),
          .scale = scale.values(),
          .mean = context.inputs[2].as<const float>(),
          .variation = context.inputs[3].as<const float>(),
          .dx = context.outputs[0].as<T>(),
          .dscale = context.outputs[1].as<float>(),
          .dbias = context.outputs[2].as<float>(),
          .partial = static_cast<float*>(context.workspace),
          .rows = rows,
          .size = size,
          .epsilon = static_cast<float>(context.attributes().number("epsilon"))};
      return make_kernel([=](Stream&) {
        static_cast<void>(scale);  // lives as long as the kernel
        gradient.run();
      });
    });
  };
}

}  // namespace fleet
