#include "backend/cpu/broadcast_loops.h"
#include "backend/cpu/channel_scale.h"

namespace fleet {
namespace {

using cpu::ChannelScale;

struct Multiply {
  FLEET_INLINE float operator()(float x, float y) const { return x * y; }
};

Broadcast factors_of(const LayoutQuery& query) {
  return *broadcast_of(query.input_var(0).shape, query.input_var(1).shape,
                       query.attributes().integer("axis"));
}

void forward_layouts(LayoutQuery& query) {
  const std::optional<Layout> layout = ChannelScale::layout_for(query, factors_of(query));
  if (!layout) return cpu::broadcast_layouts(query, 0, 1);
  query.need(0, *layout);
  query.give(0, *layout);
}

void gradient_layouts(LayoutQuery& query) {
  const Broadcast factors = factors_of(query);
  query.workspace(cpu::reduce_workspace(factors));
  const std::optional<Layout> layout = ChannelScale::layout_for(query, factors);
  if (!layout || !query.has_output(1)) return cpu::broadcast_layouts(query, 0, 1);
  query.need(0, *layout);
  query.need(2, *layout);
  if (query.has_output(0)) query.give(0, *layout);
  query.workspace(ChannelScale::workspace(query.input_var(0).shape, *layout));
}

template <typename T>
FLEET_SIMD void multiply_grad(const T* x, const T* y, const T* dout, T* dx, T* dy, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float gradient = dout[i];
    dx[i] = gradient * y[i];
    dy[i] = gradient * x[i];
  }
}

template <typename T>
std::unique_ptr<Kernel> make_grad(KernelContext& context) {
  const T* x = context.inputs[0].as<T>();
  const T* y = context.inputs[1].as<T>();
  const T* dout = context.inputs[2].as<T>();
  T* dx = context.outputs[0].as<T>();
  T* dy = context.outputs[1].as<T>();
  float* partial = static_cast<float*>(context.workspace);
  const int64_t count = context.inputs[0].layout.elements();
  const Broadcast b =
      cpu::broadcast_of_op(context, context.inputs[0].shape, context.inputs[1].shape);
  if (b.same()) {
    return make_kernel([=](Stream&) {
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        const int64_t n = end - begin;
        if (dx && dy) {
          multiply_grad(x + begin, y + begin, dout + begin, dx + begin, dy + begin, n);
        } else if (dx) {
          cpu::map_range(Multiply(), dout + begin, y + begin, dx + begin, n);
        } else {
          cpu::map_range(Multiply(), dout + begin, x + begin, dy + begin, n);
        }
      });
    });
  }
  if (dy && ChannelScale::is_for(context.inputs[0], b)) {
    return make_kernel([=, scale = ChannelScale(context.inputs[0]), workspace = context.workspace](
                           Stream&) { scale.gradient(x, y, dout, dx, dy, workspace); });
  }
  if (!dy) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_for_each(b, [=](int64_t i, int64_t m) { dx[i] = dout[i] * y[m]; });
    });
  }
  return make_kernel([=](Stream&) {
    cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t m) {
      const float gradient = dout[i];
      if (dx) dx[i] = gradient * y[m];
      return gradient * x[i];
    });
  });
}

}  // namespace

FLEET_KERNEL(cpu, elementwise_mul) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &y = context.inputs[1], &out = context.outputs[0];
    if (!ChannelScale::is_for(x, cpu::broadcast_of_op(context, x.shape, y.shape))) {
      return cpu::broadcast_kernel(context, Multiply());
    }
    return cpu::with_loop_type(x.dtype, [&]<typename T>(T) {
      return make_kernel([=, scale = ChannelScale(x)](Stream&) {
        scale.multiply(x.as<T>(), y.as<T>(), out.as<T>());
      });
    });
  };
}

FLEET_KERNEL(cpu, elementwise_mul_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = gradient_layouts;
  def.create = [](KernelContext& context) {
    return cpu::with_loop_type(context.inputs[0].dtype,
                               [&]<typename T>(T) { return make_grad<T>(context); });
  };
}

}  // namespace fleet
