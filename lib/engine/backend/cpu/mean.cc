#include "backend/cpu/reduce.h"

namespace fleet {
namespace {

FLEET_SIMD double sum(const float* x, int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

}  // namespace

FLEET_KERNEL(cpu, mean) {
  def.layouts = cpu::any_layouts;
  def.create = [](KernelContext& context) {
    std::vector<cpu::Piece> pieces;
    cpu::append_pieces(pieces, context.inputs[0]);
    double* partial = static_cast<double*>(context.workspace);
    float* out = context.outputs[0].as<float>();
    const double count = static_cast<double>(context.inputs[0].shape.elements());
    return make_kernel([=](Stream&) {
      *out = static_cast<float>(cpu::reduce_pieces<sum>(pieces, partial) / count);
    });
  };
}

FLEET_KERNEL(cpu, mean_grad) {
  def.create = [](KernelContext& context) {
    const float* dmean = context.inputs[0].as<float>();
    float* dx = context.outputs[0].as<float>();
    const int64_t count = context.outputs[0].shape.elements();
    return make_kernel([=](Stream&) {
      const float value = *dmean / static_cast<float>(count);
      cpu::parallel_ranges(
          count, [=](int64_t begin, int64_t end) { std::fill(dx + begin, dx + end, value); });
    });
  };
}

}  // namespace fleet
