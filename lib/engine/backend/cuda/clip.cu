#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Bounds {
  float min, max;
  explicit Bounds(const Attributes& attributes)
      : min(static_cast<float>(attributes.number("min"))),
        max(static_cast<float>(attributes.number("max"))) {}
};

struct Clip {
  Bounds bounds;
  __device__ float operator()(float x) const {
    return x < bounds.min ? bounds.min : (x > bounds.max ? bounds.max : x);
  }
};

struct ClipGrad {
  Bounds bounds;
  __device__ float operator()(float x, float dy) const {
    return x >= bounds.min && x <= bounds.max ? dy : 0;
  }
};

}  // namespace

FLEET_KERNEL(cuda, clip) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Bounds bounds(query.attributes());
    same_layout(query, /*keeps_zeros=*/bounds.min <= 0 && bounds.max >= 0);
  };
  def.create = [](KernelContext& context) {
    return cuda::unary_kernel(context, Clip{Bounds(context.attributes())});
  };
}

FLEET_KERNEL(cuda, clip_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::binary_kernel(context, ClipGrad{Bounds(context.attributes())});
  };
}

}  // namespace fleet
