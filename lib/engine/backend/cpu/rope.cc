#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct RopeExtent {
  int64_t tokens, heads, rotated, size, half;  // `rotated` heads; pairs i and half + i of each

  explicit RopeExtent(const KernelContext& context) {
    const Shape &x = context.inputs[0].shape, &table = context.inputs[1].shape;
    const int64_t given = context.attributes().integer("heads");
    tokens = x[0] * x[1];
    heads = x[2];
    rotated = given == 0 ? heads : given;
    size = x[3];
    half = table[2];
  }
};

// One token's rotated heads; y may be x. back: by the negative angles.
template <bool back, typename T>
FLEET_SIMD void rotate_heads(const RopeExtent& e, const T* x, const float* cos, const float* sin,
                             T* y) {
  for (int64_t head = 0; head < e.rotated; ++head) {
    const T *first = x + head * e.size, *second = first + e.half;
    T *to_first = y + head * e.size, *to_second = to_first + e.half;
#pragma omp simd
    for (int64_t i = 0; i < e.half; ++i) {
      const float a = first[i], b = second[i], c = cos[i], s = back ? -sin[i] : sin[i];
      to_first[i] = a * c - b * s;
      to_second[i] = b * c + a * s;
    }
  }
}

template <typename T>
void copy_unrotated(const RopeExtent& e, const T* x, T* y) {
  if (x == y) return;
  if (2 * e.half < e.size) {
    for (int64_t head = 0; head < e.rotated; ++head) {
      const int64_t at = head * e.size + 2 * e.half;
      std::memcpy(y + at, x + at, (e.size - 2 * e.half) * sizeof(T));
    }
  }
  const int64_t at = e.rotated * e.size;
  std::memcpy(y + at, x + at, (e.heads - e.rotated) * e.size * sizeof(T));
}

template <bool back>
void define_rope(KernelDef& def) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const RopeExtent extent(context);
      const T* x = context.inputs[0].as<const T>();
      const float* cos = context.inputs[1].as<const float>();
      const float* sin = context.inputs[2].as<const float>();
      T* y = context.outputs[0].as<T>();
      return make_kernel([=](Stream&) {
        const int64_t row = extent.heads * extent.size;
        const bool parallel = extent.tokens * row >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
        for (int64_t token = 0; token < extent.tokens; ++token) {
          const int64_t at = token * row, angle = token * extent.half;
          rotate_heads<back>(extent, x + at, cos + angle, sin + angle, y + at);
          copy_unrotated(extent, x + at, y + at);
        }
      });
    });
  };
}

}  // namespace

FLEET_KERNEL(cpu, rope) { define_rope<false>(def); }
FLEET_KERNEL(cpu, rope_grad) { define_rope<true>(def); }

}  // namespace fleet
