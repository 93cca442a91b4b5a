#include <algorithm>
#include <cmath>
#include <limits>

#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cpu, clip_scale) {
  def.create = [](KernelContext& context) {
    const float* square = context.inputs[0].as<float>();
    const float* unscale = context.inputs[1].as<float>();
    float* scale = context.outputs[0].as<float>();
    const double clip_norm = context.attributes().number("clip_norm");
    return make_kernel([=](Stream&) {
      const double factor = unscale ? *unscale : 1;
      const double norm = factor * std::sqrt(static_cast<double>(*square));
      *scale = std::isfinite(norm)
                   ? static_cast<float>(factor * clip_norm / std::max(norm, clip_norm))
                   : std::numeric_limits<float>::quiet_NaN();
    });
  };
}

}  // namespace fleet
