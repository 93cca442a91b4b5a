#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Scale {
  float factor, bias;
  __device__ float operator()(float x) const { return x * factor + bias; }
};

}  // namespace

FLEET_KERNEL(cuda, scale) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    same_layout(query, /*keeps_zeros=*/query.attributes().number("bias") == 0);
  };
  def.create = [](KernelContext& context) {
    return cuda::unary_kernel(context,
                              Scale{static_cast<float>(context.attributes().number("scale")),
                                    static_cast<float>(context.attributes().number("bias"))});
  };
}

}  // namespace fleet
