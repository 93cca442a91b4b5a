#include <algorithm>
#include <cmath>

#include "exec/kernel.h"

namespace fleet {
namespace {

struct LossScalingRule {
  int64_t incr_every, decr_every;
  float incr_ratio, decr_ratio;

  void update(bool found_inf, float& scaling, int64_t& good, int64_t& bad) const {
    if (found_inf) {
      good = 0;
      if (++bad == decr_every) {
        scaling = std::max(1.f, scaling * decr_ratio);
        bad = 0;
      }
    } else {
      bad = 0;
      if (++good == incr_every) {
        if (std::isfinite(scaling * incr_ratio)) scaling *= incr_ratio;
        good = 0;
      }
    }
  }
};

}  // namespace

FLEET_KERNEL(cpu, update_loss_scaling) {
  def.create = [](KernelContext& context) {
    const int32_t* found_inf = context.inputs[0].as<int32_t>();
    float* scaling = context.outputs[0].as<float>();
    int64_t *good = context.outputs[1].as<int64_t>(), *bad = context.outputs[2].as<int64_t>();
    const Attributes& attributes = context.attributes();
    const LossScalingRule rule{.incr_every = attributes.integer("incr_every_n_steps"),
                               .decr_every = attributes.integer("decr_every_n_nan_or_inf"),
                               .incr_ratio = static_cast<float>(attributes.number("incr_ratio")),
                               .decr_ratio = static_cast<float>(attributes.number("decr_ratio"))};
    return make_kernel([=](Stream&) { rule.update(*found_inf != 0, *scaling, *good, *bad); });
  };
}

}  // namespace fleet
