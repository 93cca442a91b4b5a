#include "backend/cuda/optim_update.h"

namespace fleet {
namespace {

struct EmaConstants {
  float rate;
  // As torch.lerp: exact at both ends.
  __device__ void update(float& average, float value) const {
    average =
        rate < 0.5f ? average + rate * (value - average) : value - (value - average) * (1 - rate);
  }
};

struct EmaRule {
  static constexpr int kStates = 0;
  explicit EmaRule(const Attributes&) {}
  __device__ EmaConstants at(float rate, float) const { return {rate}; }
};

// power 0: no warm-up.
__global__ void decide_rate(const int64_t* updates, double decay, double gamma, double power,
                            float* rate, int32_t* begun) {
  const double before = static_cast<double>(*updates - 1);
  double kept = decay;
  if (power > 0) kept = fmin(decay, 1 - pow(1 + before / gamma, -power));
  *begun = *updates > 0 ? 1 : 0;
  *rate = *updates > 1 ? static_cast<float>(1 - kept) : 1.0f;
}

}  // namespace

FLEET_KERNEL(cuda, ema) { cuda::define_update<EmaRule>(def); }

FLEET_KERNEL(cuda, ema_rate) {
  def.create = [](KernelContext& context) {
    const Attributes& attributes = context.attributes();
    const double decay = attributes.number("decay"), gamma = attributes.number("gamma");
    const double power = attributes.boolean("warmup") ? attributes.number("power") : 0;
    const int64_t* updates = context.inputs[0].as<const int64_t>();
    float* rate = context.outputs[0].as<float>();
    int32_t* begun = context.outputs[1].as<int32_t>();
    return make_kernel([=](Stream& stream) {
      cuda::launch(decide_rate, 1, 1, 0, cuda::stream_of(stream), updates, decay, gamma, power,
                   rate, begun);
    });
  };
}

}  // namespace fleet
