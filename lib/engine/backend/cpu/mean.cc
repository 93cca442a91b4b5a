// The sum of a whole tensor, in pieces whose bounds, and therefore the result, do not depend on the
// number of threads.
#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD double sum(const float* x, int64_t count) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < count; ++i) total += x[i];
  return total;
}

int64_t pieces_of(int64_t elements) {
  return (elements + cpu::kReduceElements - 1) / cpu::kReduceElements;
}

// partial: memory for one double per piece.
double sum_of_pieces(const float* x, int64_t elements, double* partial) {
  const int64_t pieces = pieces_of(elements);
#pragma omp parallel for if (pieces > 1)
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t begin = i * cpu::kReduceElements;
    partial[i] = sum(x + begin, std::min(cpu::kReduceElements, elements - begin));
  }
  double total = 0;
  for (int64_t i = 0; i < pieces; ++i) total += partial[i];
  return total;
}

}  // namespace

FLEET_KERNEL(cpu, mean) {
  // Takes its input in any layout: padding holds zeros, which add nothing.
  def.layouts = [](LayoutQuery& query) {
    if (query.input(0) && !query.input(0)->is_opaque()) query.need(0, *query.input(0));
    query.workspace(static_cast<size_t>(pieces_of(query.needed(0).elements())) * sizeof(double));
  };
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    const int64_t elements = context.inputs[0].layout.elements();
    double* partial = static_cast<double*>(context.workspace);
    float* out = context.outputs[0].as<float>();
    const double count = static_cast<double>(context.inputs[0].shape.elements());
    return make_kernel(
        [=](Stream&) { *out = static_cast<float>(sum_of_pieces(x, elements, partial) / count); });
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
