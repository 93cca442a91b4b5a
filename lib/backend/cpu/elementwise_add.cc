#include "backend/cpu/broadcast_loops.h"

namespace fleet {
namespace {

FLEET_SIMD void add(const float* x, const float* y, float* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] + y[i];
}

FLEET_SIMD void add_relu(const float* x, const float* y, float* out, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float sum = x[i] + y[i];
    out[i] = sum > 0 ? sum : 0;
  }
}

bool has_relu(const KernelContext& context) {
  const std::string& activation = context.attributes().text("activation");
  FLEET_CHECK(activation.empty() || activation == "relu", "elementwise_add of " + activation);
  return !activation.empty();
}

std::unique_ptr<Kernel> spread_add(KernelContext& context, const Broadcast& b) {
  const float* x = context.inputs[0].as<float>();
  const float* y = context.inputs[1].as<float>();
  float* out = context.outputs[0].as<float>();
  if (has_relu(context)) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_for_each(b, [=](int64_t i, int64_t m) {
        const float sum = x[i] + y[m];
        out[i] = sum > 0 ? sum : 0;
      });
    });
  }
  return make_kernel([=](Stream&) {
    cpu::broadcast_for_each(b, [=](int64_t i, int64_t m) { out[i] = x[i] + y[m]; });
  });
}

// dy and, with relu, dx in one pass over memory.
std::unique_ptr<Kernel> spread_add_grad(KernelContext& context) {
  const float* dout = context.inputs[0].as<float>();
  const float* out = context.inputs[1].as<float>();
  float* dx = context.outputs[0].as<float>();
  float* dy = context.outputs[1].as<float>();
  float* partial = static_cast<float*>(context.workspace);
  const std::vector<int64_t>& dims = context.attributes().integers("y_shape");
  const Broadcast b =
      cpu::broadcast_of_op(context, context.inputs[0].shape, Shape(std::span<const int64_t>(dims)));
  const bool masked = has_relu(context);
  if (!dy) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_for_each(b, [=](int64_t i, int64_t) {
        dx[i] = masked ? cpu::where_positive(out[i], dout[i]) : dout[i];
      });
    });
  }
  if (!masked) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t) {
        if (dx) dx[i] = dout[i];
        return dout[i];
      });
    });
  }
  if (!dx) {
    return make_kernel([=](Stream&) {
      cpu::broadcast_reduce(
          b, partial, dy, [=](int64_t i, int64_t) { return cpu::where_positive(out[i], dout[i]); });
    });
  }
  return make_kernel([=](Stream&) {
    cpu::broadcast_reduce(b, partial, dy, [=](int64_t i, int64_t) {
      const float value = cpu::where_positive(out[i], dout[i]);
      dx[i] = value;
      return value;
    });
  });
}

}  // namespace

FLEET_KERNEL(cpu, elementwise_add) {
  def.layouts = [](LayoutQuery& query) { cpu::broadcast_layouts(query, 0, 1); };
  def.create = [](KernelContext& context) {
    const Broadcast b =
        cpu::broadcast_of_op(context, context.inputs[0].shape, context.inputs[1].shape);
    if (!b.same()) return spread_add(context, b);
    return has_relu(context) ? cpu::binary_kernel<add_relu>(context)
                             : cpu::binary_kernel<add>(context);
  };
}

FLEET_KERNEL(cpu, elementwise_add_grad) {
  def.layouts = [](LayoutQuery& query) {
    const Shape y(std::span<const int64_t>(query.attributes().integers("y_shape")));
    const auto b = broadcast_of(query.input_var(0).shape, y, query.attributes().integer("axis"));
    query.workspace(cpu::reduce_workspace(*b));
  };
  def.create = spread_add_grad;
}

}  // namespace fleet
