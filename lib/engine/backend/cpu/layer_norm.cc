#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

constexpr int64_t kParts = 64;  // parts of the rows, at most: their sums are added in order

template <typename T>
struct Rows {
  const T* x;
  const float *scale, *bias;  // null: 1 and 0
  int64_t count, size;
  float epsilon;
  bool parallel() const { return count * size >= cpu::kParallelElements; }
};

template <typename T>
Rows<T> rows_of(const KernelContext& context) {
  const Argument& x = context.inputs[0];
  const auto axis = static_cast<int>(context.attributes().integer("begin_norm_axis"));
  int64_t count = 1;
  for (int d = 0; d < axis; ++d) count *= x.shape[d];
  return {.x = x.as<const T>(),
          .scale = context.inputs[1].as<const float>(),
          .bias = nullptr,
          .count = count,
          .size = x.shape.elements() / count,
          .epsilon = static_cast<float>(context.attributes().number("epsilon"))};
}

template <typename T>
void normalize(const Rows<T>& rows, int64_t row, T* y, float& mean, float& variance) {
  const T* x = rows.x + row * rows.size;
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < rows.size; ++i) sum += static_cast<float>(x[i]);
  const float middle = sum / static_cast<float>(rows.size);
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < rows.size; ++i) {
    const float distance = static_cast<float>(x[i]) - middle;
    squares += distance * distance;
  }
  mean = middle;
  variance = squares / static_cast<float>(rows.size);
  const float factor = 1 / std::sqrt(variance + rows.epsilon);
  for (int64_t i = 0; i < rows.size; ++i) {
    float value = (static_cast<float>(x[i]) - middle) * factor;
    if (rows.scale) value *= rows.scale[i];
    if (rows.bias) value += rows.bias[i];
    y[row * rows.size + i] = static_cast<T>(value);
  }
}

template <typename T>
std::unique_ptr<Kernel> make_forward(KernelContext& context) {
  Rows<T> rows = rows_of<T>(context);
  rows.bias = context.inputs[2].as<const float>();
  T* y = context.outputs[0].as<T>();
  float* mean = context.outputs[1].as<float>();
  float* variance = context.outputs[2].as<float>();
  return make_kernel([=](Stream&) {
#pragma omp parallel for if (rows.parallel())
    for (int64_t row = 0; row < rows.count; ++row) {
      float own_mean, own_variance;
      normalize(rows, row, y, own_mean, own_variance);
      if (mean) mean[row] = own_mean;
      if (variance) variance[row] = own_variance;
    }
  });
}

template <typename T>
struct Gradient {
  Rows<T> rows;
  const float *mean, *variance;
  const T* dy;
  T* dx;
  float *dscale, *dbias, *partial;  // partial: kParts sums of dscale, then of dbias

  float factor(int64_t row) const { return 1 / std::sqrt(variance[row] + rows.epsilon); }

  void data(int64_t row) const {
    const int64_t at = row * rows.size;
    const float inverse = factor(row);
    float sum = 0, product = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const float g = static_cast<float>(dy[at + i]) * (rows.scale ? rows.scale[i] : 1);
      sum += g;
      product += g * (static_cast<float>(rows.x[at + i]) - mean[row]) * inverse;
    }
    const float count = static_cast<float>(rows.size);
    for (int64_t i = 0; i < rows.size; ++i) {
      const float g = static_cast<float>(dy[at + i]) * (rows.scale ? rows.scale[i] : 1);
      const float n = (static_cast<float>(rows.x[at + i]) - mean[row]) * inverse;
      dx[at + i] = static_cast<T>((g - sum / count - n * product / count) * inverse);
    }
  }

  // The sums of one part of the rows.
  void parameters(int64_t part, int64_t parts) const {
    float* scales = partial + part * rows.size;
    float* biases = scales + kParts * rows.size;
    std::fill_n(scales, rows.size, 0.0f);
    std::fill_n(biases, rows.size, 0.0f);
    for (int64_t row = rows.count * part / parts; row < rows.count * (part + 1) / parts; ++row) {
      const int64_t at = row * rows.size;
      const float inverse = factor(row);
      for (int64_t i = 0; i < rows.size; ++i) {
        const float slope = static_cast<float>(dy[at + i]);
        scales[i] += slope * (static_cast<float>(rows.x[at + i]) - mean[row]) * inverse;
        biases[i] += slope;
      }
    }
  }

  void run() const {
    const int64_t parts = std::min(kParts, rows.count);
    if (dscale || dbias) {
#pragma omp parallel for if (rows.parallel())
      for (int64_t part = 0; part < parts; ++part) parameters(part, parts);
      for (int64_t i = 0; i < rows.size; ++i) {
        float scales = 0, biases = 0;
        for (int64_t part = 0; part < parts; ++part) {
          scales += partial[part * rows.size + i];
          biases += partial[(kParts + part) * rows.size + i];
        }
        if (dscale) dscale[i] = scales;
        if (dbias) dbias[i] = biases;
      }
    }
    if (!dx) return;
#pragma omp parallel for if (rows.parallel())
    for (int64_t row = 0; row < rows.count; ++row) data(row);
  }
};

template <typename T>
std::unique_ptr<Kernel> make_gradient(KernelContext& context) {
  const Gradient<T> gradient{.rows = rows_of<T>(context),
                             .mean = context.inputs[2].as<const float>(),
                             .variance = context.inputs[3].as<const float>(),
                             .dy = context.inputs[4].as<const T>(),
                             .dx = context.outputs[0].as<T>(),
                             .dscale = context.outputs[1].as<float>(),
                             .dbias = context.outputs[2].as<float>(),
                             .partial = static_cast<float*>(context.workspace)};
  return make_kernel([=](Stream&) { gradient.run(); });
}

}  // namespace

FLEET_KERNEL(cpu, layer_norm) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16};
  def.create = [](KernelContext& context) {
    return context.inputs[0].dtype == DType::kBFloat16 ? make_forward<BFloat16>(context)
                                                       : make_forward<float>(context);
  };
}

FLEET_KERNEL(cpu, layer_norm_grad) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16};
  def.layouts = [](LayoutQuery& query) {
    const int64_t size = query.input_var(0).shape.elements() / query.input_var(2).shape.elements();
    query.workspace(static_cast<size_t>(2 * kParts * size) * sizeof(float));
  };
  def.create = [](KernelContext& context) {
    return context.inputs[0].dtype == DType::kBFloat16 ? make_gradient<BFloat16>(context)
                                                       : make_gradient<float>(context);
  };
}

}  // namespace fleet
