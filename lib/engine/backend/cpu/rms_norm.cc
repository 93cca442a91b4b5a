#include "backend/cpu/row_norm.h"

namespace fleet {
namespace {

// adds: x + residual is input 0 + input 1, and output 1; the other arguments move up by one.
template <bool adds, typename T>
std::unique_ptr<Kernel> make_rms_norm(KernelContext& context) {
  const Shape& shape = context.inputs[0].shape;
  const int64_t size = shape[shape.rank() - 1], rows = shape.elements() / size;
  const T* x = context.inputs[0].as<const T>();
  const T* residual = adds ? context.inputs[1].as<const T>() : nullptr;
  const float* scale = context.inputs[adds ? 2 : 1].as<const float>();
  T* y = context.outputs[0].as<T>();
  T* sum = adds ? context.outputs[1].as<T>() : nullptr;
  float* saved_rstd = context.outputs[adds ? 2 : 1].as<float>();
  const auto epsilon = static_cast<float>(context.attributes().number("epsilon"));
  return make_kernel([=](Stream&) {
    cpu::for_norm_rows(rows, size, [=](int64_t row) {
      const int64_t at = row * size;
      if constexpr (adds) cpu::add_row(x + at, residual + at, sum + at, size);
      float rstd;
      cpu::rms_norm_row((adds ? sum : x) + at, scale, y + at, size, epsilon, &rstd);
      if (saved_rstd) saved_rstd[row] = rstd;
    });
  });
}

template <bool adds>
void define_rms_norm(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_rms_norm<adds, T>(context); });
  };
}

}  // namespace

FLEET_KERNEL(cpu, rms_norm) { define_rms_norm<false>(def); }
FLEET_KERNEL(cpu, add_rms_norm) { define_rms_norm<true>(def); }

FLEET_KERNEL(cpu, rms_norm_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cpu::row_norm_workspace(query.input_var(1).shape.elements()));
  };
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const int64_t size = context.inputs[1].shape.elements();
      const cpu::RowNormGradient<false, T> gradient{
          .x = context.inputs[0].as<const T>(),
          .dy = context.inputs[3].as<const T>(),
          .dsum = context.inputs[4].as<const T>(),
          .scale = context.inputs[1].as<const float>(),
          .mean = nullptr,
          .variation = context.inputs[2].as<const float>(),
          .dx = context.outputs[0].as<T>(),
          .dscale = context.outputs[1].as<float>(),
          .dbias = nullptr,
          .partial = static_cast<float*>(context.workspace),
          .rows = context.inputs[0].shape.elements() / size,
          .size = size,
          .epsilon = 0};
      return make_kernel([=](Stream&) { gradient.run(); });
    });
  };
}

}  // namespace fleet
