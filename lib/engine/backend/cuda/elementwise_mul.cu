#include "backend/cuda/broadcast_loops.h"

namespace fleet {
namespace {

struct Multiply {
  __device__ float operator()(float x, float y) const { return x * y; }
};

// dx = dout * y and dy = dout * x for operands of one shape, in one pass; either may be null.
template <int pack, typename T>
__global__ void multiply_grad(const T* x, const T* y, const T* dout, T* dx, T* dy, int64_t count) {
  const int64_t begin = cuda::thread_index() * pack;
  if (begin >= count) return;
  const cuda::Pack<float, pack> a = cuda::load_floats<pack>(x, begin);
  const cuda::Pack<float, pack> b = cuda::load_floats<pack>(y, begin);
  const cuda::Pack<float, pack> slope = cuda::load_floats<pack>(dout, begin);
  cuda::Pack<float, pack> da, db;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    da.at[i] = slope.at[i] * b.at[i];
    db.at[i] = slope.at[i] * a.at[i];
  }
  if (dx) cuda::store_floats<pack>(dx, begin, da);
  if (dy) cuda::store_floats<pack>(dy, begin, db);
}

template <typename T>
struct MulGrad {
  const T *x, *y, *dout;
  T* dx;
  __device__ float operator()(int64_t i, int64_t m) const {
    const float slope = cuda::to_float(dout[i]), value = slope * cuda::to_float(x[i]);
    if (dx) dx[i] = cuda::from_float<T>(m < 0 ? 0.0f : slope * cuda::to_float(y[m]));
    return value;
  }
};

std::unique_ptr<Kernel> make_grad(KernelContext& context) {
  const Argument x = context.inputs[0], y = context.inputs[1], dout = context.inputs[2];
  const Argument dx = context.outputs[0], dy = context.outputs[1];
  FLEET_CHECK(x.dtype == y.dtype, "operands have different types");
  float* partial = static_cast<float*>(context.workspace);
  return cuda::dispatch(x.dtype, [&](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if (x.shape == y.shape) {
      constexpr int kWide = cuda::kPack<T>;
      const int64_t count = x.layout.elements();
      const bool wide = count % kWide == 0;
      const auto kernel = wide ? multiply_grad<kWide, T> : multiply_grad<1, T>;
      const unsigned blocks = cuda::blocks_for(count, wide ? cuda::kBlock * kWide : cuda::kBlock);
      return make_kernel([=](Stream& stream) {
        cuda::launch(kernel, blocks, cuda::kBlock, 0, cuda::stream_of(stream), x.as<const T>(),
                     y.as<const T>(), dout.as<const T>(), dx.as<T>(), dy.as<T>(), count);
      });
    }
    const cuda::BroadcastLoop loop = cuda::broadcast_loop_of(context, y.shape);
    const MulGrad<T> value{x.as<const T>(), y.as<const T>(), dout.as<const T>(), dx.as<T>()};
    return make_kernel([=](Stream& stream) {
      cuda::sum_broadcast(cuda::stream_of(stream), loop, value, partial, dy.as<T>());
    });
  });
}

}  // namespace

FLEET_KERNEL(cuda, elementwise_mul) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    cuda::broadcast_layouts(query, query.input_var(1).shape);
  };
  def.create = [](KernelContext& context) { return cuda::broadcast_kernel(context, Multiply()); };
}

FLEET_KERNEL(cuda, elementwise_mul_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Shape &x = query.input_var(0).shape, &y = query.input_var(1).shape;
    cuda::broadcast_layouts(query, y);
    if (x == y) return;
    query.workspace(cuda::broadcast_workspace(
        *cuda::broadcast_over(x, query.needed(0), y, query.attributes().integer("axis"))));
  };
  def.create = make_grad;
}

}  // namespace fleet
