#include <vector>

#include "backend/cpu/elementwise.h"
#include "ops/bilinear.h"

namespace fleet {
namespace {

std::vector<BilinearTap> taps_of(int64_t inputs, int64_t outputs) {
  std::vector<BilinearTap> taps;
  for (int64_t i = 0; i < outputs; ++i) taps.push_back(bilinear_tap(i, inputs, outputs));
  return taps;
}

// Planes of `inner` (height, width) that are enlarged to `outer`.
struct Planes {
  int64_t count, inner_height, inner_width;
  std::vector<BilinearTap> rows, columns;

  Planes(const Shape& inner, const Shape& outer)
      : count(inner[0] * inner[1]),
        inner_height(inner[2]),
        inner_width(inner[3]),
        rows(taps_of(inner[2], outer[2])),
        columns(taps_of(inner[3], outer[3])) {}
  int64_t inner() const { return inner_height * inner_width; }
  int64_t outer() const { return std::ssize(rows) * std::ssize(columns); }
  bool parallel() const { return count * outer() >= cpu::kParallelElements; }
};

void enlarge(const Planes& planes, const float* x, float* y) {
  for (const BilinearTap& row : planes.rows) {
    const float* low = x + row.low * planes.inner_width;
    const float* high = x + row.high * planes.inner_width;
    for (const BilinearTap& at : planes.columns) {
      const float left = low[at.low] + row.share * (high[at.low] - low[at.low]);
      const float right = low[at.high] + row.share * (high[at.high] - low[at.high]);
      *y++ = left + at.share * (right - left);
    }
  }
}

// A plane is summed by one thread: the same bits whatever the number of threads.
void add_gradient(const Planes& planes, const float* dy, float* dx) {
  std::fill_n(dx, planes.inner(), 0.0f);
  for (const BilinearTap& row : planes.rows) {
    float* low = dx + row.low * planes.inner_width;
    float* high = dx + row.high * planes.inner_width;
    for (const BilinearTap& at : planes.columns) {
      const float right = *dy * at.share, left = *dy++ - right;
      low[at.low] += left - row.share * left;
      low[at.high] += right - row.share * right;
      high[at.low] += row.share * left;
      high[at.high] += row.share * right;
    }
  }
}

}  // namespace

FLEET_KERNEL(cpu, resize_bilinear) {
  def.create = [](KernelContext& context) {
    const float* x = context.inputs[0].as<float>();
    float* y = context.outputs[0].as<float>();
    const Planes planes(context.inputs[0].shape, context.outputs[0].shape);
    return make_kernel([=](Stream&) {
#pragma omp parallel for if (planes.parallel())
      for (int64_t i = 0; i < planes.count; ++i) {
        enlarge(planes, x + i * planes.inner(), y + i * planes.outer());
      }
    });
  };
}

FLEET_KERNEL(cpu, resize_bilinear_grad) {
  def.create = [](KernelContext& context) {
    const float* dy = context.inputs[0].as<float>();
    float* dx = context.outputs[0].as<float>();
    const Planes planes(context.outputs[0].shape, context.inputs[0].shape);
    return make_kernel([=](Stream&) {
#pragma omp parallel for if (planes.parallel())
      for (int64_t i = 0; i < planes.count; ++i) {
        add_gradient(planes, dy + i * planes.outer(), dx + i * planes.inner());
      }
    });
  };
}

}  // namespace fleet
