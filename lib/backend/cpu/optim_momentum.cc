#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Constants {
  float scale, rate, momentum, decay;
};

FLEET_SIMD void heavy_ball(float* parameter, const float* gradient, float* velocity, int64_t count,
                           Constants k) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float d = gradient[i] * k.scale + k.decay * parameter[i];
    velocity[i] = k.momentum * velocity[i] + d;
    parameter[i] -= k.rate * velocity[i];
  }
}

FLEET_SIMD void nesterov(float* parameter, const float* gradient, float* velocity, int64_t count,
                         Constants k) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float d = gradient[i] * k.scale + k.decay * parameter[i];
    velocity[i] = k.momentum * velocity[i] + d;
    parameter[i] -= k.rate * (d + k.momentum * velocity[i]);
  }
}

}  // namespace

FLEET_KERNEL(cpu, momentum) {
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    float* parameter = context.outputs[0].as<float>();
    float* velocity = context.outputs[1].as<float>();
    const float* gradient = context.inputs[1].as<float>();
    const float* rate = context.inputs[2].as<float>();
    const float* scale = context.inputs[4].as<float>();
    const float momentum = static_cast<float>(context.attributes().number("momentum"));
    const float decay = static_cast<float>(context.attributes().number("weight_decay"));
    const auto update = context.attributes().boolean("use_nesterov") ? nesterov : heavy_ball;
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=](Stream&) {
      const Constants k{scale ? *scale : 1, *rate, momentum, decay};
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        update(parameter + begin, gradient + begin, velocity + begin, end - begin, k);
      });
    });
  };
}

}  // namespace fleet
