#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

// x as [outer, classes, inner].
struct Extent {
  int64_t outer = 1, classes, inner = 1;
  Extent(const Shape& shape, int64_t axis) {
    const int at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    for (int d = 0; d < at; ++d) outer *= shape[d];
    classes = shape[at];
    for (int d = at + 1; d < shape.rank(); ++d) inner *= shape[d];
  }
  bool parallel() const { return outer * classes * inner >= cpu::kParallelElements; }
};

FLEET_SIMD void softmax_row(const float* x, float* y, int64_t classes) {
  const float largest = cpu::row_max(x, classes);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) {
    y[c] = cpu::fast_exp(x[c] - largest);
    sum += y[c];
  }
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) y[c] *= factor;
}

FLEET_SIMD void softmax_grad_row(const float* y, const float* dy, float* dx, int64_t classes) {
  float dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t c = 0; c < classes; ++c) dot += y[c] * dy[c];
#pragma omp simd
  for (int64_t c = 0; c < classes; ++c) dx[c] = y[c] * (dy[c] - dot);
}

constexpr int64_t kColumns = 64;  // columns processed together if the axis is not the last

FLEET_SIMD void softmax_columns(const float* x, float* y, int64_t classes, int64_t stride,
                                int64_t columns) {
  float largest[kColumns], sum[kColumns];
  for (int64_t i = 0; i < columns; ++i) {
    largest[i] = x[i];
    sum[i] = 0;
  }
  for (int64_t c = 1; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      const float value = x[c * stride + i];
      largest[i] = value > largest[i] ? value : largest[i];
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      const float value = cpu::fast_exp(x[c * stride + i] - largest[i]);
      y[c * stride + i] = value;
      sum[i] += value;
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) y[c * stride + i] /= sum[i];
  }
}

FLEET_SIMD void softmax_grad_columns(const float* y, const float* dy, float* dx, int64_t classes,
                                     int64_t stride, int64_t columns) {
  float dot[kColumns] = {};
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) dot[i] += y[c * stride + i] * dy[c * stride + i];
  }
  for (int64_t c = 0; c < classes; ++c) {
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      dx[c * stride + i] = y[c * stride + i] * (dy[c * stride + i] - dot[i]);
    }
  }
}

// body(offset, columns) for each row (columns 1) or group of columns.
template <typename Body>
void for_each_group(const Extent& extent, Body body) {
  const int64_t groups = (extent.inner + kColumns - 1) / kColumns;
#pragma omp parallel for if (extent.parallel())
  for (int64_t unit = 0; unit < extent.outer * groups; ++unit) {
    const int64_t first = unit % groups * kColumns;
    body(unit / groups * extent.classes * extent.inner + first,
         std::min(kColumns, extent.inner - first));
  }
}

}  // namespace

FLEET_KERNEL(cpu, softmax) {
  def.create = [](KernelContext& context) {
    const Extent extent(context.inputs[0].shape, context.attributes().integer("axis"));
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      for_each_group(extent, [=](int64_t at, int64_t columns) {
        if (extent.inner == 1) return softmax_row(x + at, y + at, extent.classes);
        softmax_columns(x + at, y + at, extent.classes, extent.inner, columns);
      });
    });
  };
}

FLEET_KERNEL(cpu, softmax_grad) {
  def.create = [](KernelContext& context) {
    const Extent extent(context.inputs[0].shape, context.attributes().integer("axis"));
    const float* y = context.inputs[0].as<float>();
    const float* dy = context.inputs[1].as<float>();
    float* dx = context.outputs[0].as<float>();
    return make_kernel([=](Stream&) {
      for_each_group(extent, [=](int64_t at, int64_t columns) {
        if (extent.inner == 1) return softmax_grad_row(y + at, dy + at, dx + at, extent.classes);
        softmax_grad_columns(y + at, dy + at, dx + at, extent.classes, extent.inner, columns);
      });
    });
  };
}

}  // namespace fleet
