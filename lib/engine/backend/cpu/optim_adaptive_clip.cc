#include <algorithm>
#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD double squares_of(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

FLEET_SIMD void multiply(const float* x, float factor, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * factor;
}

}  // namespace

FLEET_KERNEL(cpu, adaptive_clip) {
  def.create = [](KernelContext& context) {
    const Shape& shape = context.inputs[0].shape;
    const int64_t rows = shape.rank() > 1 ? shape[0] : 1;
    const int64_t columns = shape.elements() / std::max<int64_t>(rows, 1);
    const float* gradient = context.inputs[0].as<const float>();
    const float* parameter = context.inputs[1].as<const float>();
    const float* unscale = context.inputs[2].as<const float>();
    float* clipped = context.outputs[0].as<float>();
    const double clip_factor = context.attributes().number("clip_factor");
    const double epsilon = context.attributes().number("epsilon");
    return make_kernel([=](Stream&) {
      const double scale = unscale ? *unscale : 1;
#pragma omp parallel for if (rows * columns >= cpu::kParallelElements)
      for (int64_t row = 0; row < rows; ++row) {
        const float* g = gradient + row * columns;
        const double weight = std::sqrt(squares_of(parameter + row * columns, columns));
        const double norm = scale * std::sqrt(squares_of(g, columns));
        const double bound = clip_factor * std::max(weight, epsilon);
        const double factor = norm < bound ? scale : scale * bound / std::max(norm, 1e-6);
        multiply(g, static_cast<float>(factor), clipped + row * columns, columns);
      }
    });
  };
}

}  // namespace fleet
