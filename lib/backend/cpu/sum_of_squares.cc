#include "backend/cpu/reduce.h"

namespace fleet {
namespace {

FLEET_SIMD double sum_of_squares(const float* x, int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += static_cast<double>(x[i]) * x[i];
  return total;
}

}  // namespace

FLEET_KERNEL(cpu, sum_of_squares) {
  def.layouts = cpu::any_layouts;
  def.create = [](KernelContext& context) {
    std::vector<cpu::Piece> pieces;
    for (const Argument& input : context.inputs) cpu::append_pieces(pieces, input);
    double* partial = static_cast<double*>(context.workspace);
    float* out = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      *out = static_cast<float>(cpu::reduce_pieces<sum_of_squares>(pieces, partial));
    });
  };
}

}  // namespace fleet
