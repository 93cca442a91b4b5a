#include "backend/cuda/broadcast_loops.h"
#include "graph/op.h"

namespace fleet {
namespace {

struct Subtract {
  __device__ float operator()(float x, float y) const { return x - y; }
};

struct Negate {
  __device__ float operator()(float x) const { return -x; }
};

template <typename T>
struct SubGrad {
  const T* dout;
  __device__ float operator()(int64_t i, int64_t) const { return -cuda::to_float(dout[i]); }
};

}  // namespace

FLEET_KERNEL(cuda, elementwise_sub) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    cuda::broadcast_layouts(query, query.input_var(1).shape);
  };
  def.create = [](KernelContext& context) { return cuda::broadcast_kernel(context, Subtract()); };
}

FLEET_KERNEL(cuda, elementwise_sub_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape y = query.output_var(0).shape;
    cuda::broadcast_layouts(query, y);
    if (query.input_var(0).shape == y) return;
    query.workspace(cuda::broadcast_workspace(*cuda::broadcast_over(
        query.input_var(0).shape, query.needed(0), y, query.attributes().integer("axis"))));
  };
  def.create = [](KernelContext& context) {
    const Argument dout = context.inputs[0], dy = context.outputs[0];
    if (dout.shape == dy.shape) return cuda::unary_kernel(context, Negate());
    const cuda::BroadcastLoop loop = cuda::broadcast_loop_of(context, dy.shape);
    float* partial = static_cast<float*>(context.workspace);
    return cuda::dispatch(dout.dtype, [&](auto type) {
      using T = decltype(type);
      return make_kernel([=](Stream& stream) {
        cuda::sum_broadcast(cuda::stream_of(stream), loop, SubGrad<T>{dout.as<const T>()}, partial,
                            dy.as<T>());
      });
    });
  };
}

}  // namespace fleet
