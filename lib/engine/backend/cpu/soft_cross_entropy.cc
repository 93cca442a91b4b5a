#include <algorithm>
#include <cmath>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

struct SoftmaxRow {
  float largest;
  double sum;  // of exp(x - largest)

  SoftmaxRow(const float* x, int64_t classes) : largest(*std::max_element(x, x + classes)), sum(0) {
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
  }
};

struct Smoothing {
  float own, rest;
  Smoothing(const Attributes& attributes, int64_t classes) {
    const double amount = attributes.number("label_smoothing");
    own = static_cast<float>(1 - amount);
    rest = static_cast<float>(amount / static_cast<double>(classes));
  }
  float of(float share) const { return share * own + rest; }
};

}  // namespace

FLEET_KERNEL(cpu, soft_cross_entropy) {
  def.create = [](KernelContext& context) {
    const float* logits = context.inputs[0].as<float>();
    const float* target = context.inputs[1].as<float>();
    float* loss = context.outputs[0].as<float>();
    const int64_t samples = context.inputs[0].shape[0], classes = context.inputs[0].shape[1];
    const Smoothing smoothing(context.attributes(), classes);
    const bool divergence = context.attributes().boolean("divergence");
    return make_kernel([=](Stream&) {
      const bool parallel = samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < samples; ++n) {
        const float *x = logits + n * classes, *t = target + n * classes;
        const SoftmaxRow row(x, classes);
        const double norm = std::log(row.sum);
        double sum = 0;
        for (int64_t c = 0; c < classes; ++c) {
          const double share = smoothing.of(t[c]);
          if (share == 0) continue;  // 0 log 0 = 0
          const double entropy = divergence ? std::log(share) : 0;
          sum += share * (entropy + norm - (static_cast<double>(x[c]) - row.largest));
        }
        loss[n] = static_cast<float>(sum);
      }
    });
  };
}

FLEET_KERNEL(cpu, soft_cross_entropy_grad) {
  def.create = [](KernelContext& context) {
    const float* logits = context.inputs[0].as<float>();
    const float* target = context.inputs[1].as<float>();
    const float* dloss = context.inputs[2].as<float>();
    float* gradient = context.outputs[0].as<float>();
    const int64_t samples = context.inputs[0].shape[0], classes = context.inputs[0].shape[1];
    const Smoothing smoothing(context.attributes(), classes);
    return make_kernel([=](Stream&) {
      const bool parallel = samples * classes >= cpu::kParallelElements;
#pragma omp parallel for if (parallel)
      for (int64_t n = 0; n < samples; ++n) {
        const float *x = logits + n * classes, *t = target + n * classes;
        const SoftmaxRow row(x, classes);
        double total = 0;
        for (int64_t c = 0; c < classes; ++c) total += smoothing.of(t[c]);
        const auto factor = static_cast<float>(total / row.sum);
        float* dx = gradient + n * classes;
        for (int64_t c = 0; c < classes; ++c) {
          dx[c] = dloss[n] * (std::exp(x[c] - row.largest) * factor - smoothing.of(t[c]));
        }
      }
    });
  };
}

}  // namespace fleet
