#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct Constants {
  float scale;
  float beta1, beta2, epsilon;
  float rest1, rest2;     // 1 - beta1, 1 - beta2, rounded once
  float coupled_decay;    // added to the gradient
  float keep;             // what decoupled decay leaves of the parameter
  float rate;             // learning rate / (1 - beta1^t)
  float root_correction;  // 1 / sqrt(1 - beta2^t)
};

FLEET_SIMD void adam(float* parameter, const float* gradient, float* moment1, float* moment2,
                     int64_t count, Constants k) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * k.scale + k.coupled_decay * parameter[i];
    const float m1 = k.beta1 * moment1[i] + k.rest1 * g;
    const float m2 = k.beta2 * moment2[i] + k.rest2 * g * g;
    moment1[i] = m1;
    moment2[i] = m2;
    const float step = m1 / (std::sqrt(m2) * k.root_correction + k.epsilon);
    parameter[i] = parameter[i] * k.keep - k.rate * step;
  }
}

// What is the same for all elements, from the attributes and this step's inputs.
struct Rule {
  double beta1, beta2, epsilon, decay;
  bool decoupled;
  explicit Rule(const Attributes& attributes)
      : beta1(attributes.number("beta1")),
        beta2(attributes.number("beta2")),
        epsilon(attributes.number("epsilon")),
        decay(attributes.number("weight_decay")),
        decoupled(attributes.boolean("decoupled")) {}

  Constants at(int64_t step, double rate, float scale) const {
    const double t = static_cast<double>(step);
    return {.scale = scale,
            .beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .epsilon = static_cast<float>(epsilon),
            .rest1 = static_cast<float>(1 - beta1),
            .rest2 = static_cast<float>(1 - beta2),
            .coupled_decay = static_cast<float>(decoupled ? 0 : decay),
            .keep = static_cast<float>(decoupled ? 1 - rate * decay : 1),
            .rate = static_cast<float>(rate / (1 - std::pow(beta1, t))),
            .root_correction = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t)))};
  }
};

}  // namespace

FLEET_KERNEL(cpu, adam) {
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    float* parameter = context.outputs[0].as<float>();
    float* moment1 = context.outputs[1].as<float>();
    float* moment2 = context.outputs[2].as<float>();
    const float* gradient = context.inputs[1].as<float>();
    const float* rate = context.inputs[2].as<float>();
    const int64_t* step = context.inputs[5].as<int64_t>();
    const float* scale = context.inputs[6].as<float>();
    const int64_t count = context.outputs[0].layout.elements();
    return make_kernel([=, rule = Rule(context.attributes())](Stream&) {
      const Constants k = rule.at(*step, *rate, scale ? *scale : 1);
      cpu::parallel_ranges(count, [=](int64_t begin, int64_t end) {
        adam(parameter + begin, gradient + begin, moment1 + begin, moment2 + begin, end - begin, k);
      });
    });
  };
}

}  // namespace fleet
