#include <cmath>

#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cpu, sam_scale) {
  def.create = [](KernelContext& context) {
    const float* square = context.inputs[0].as<float>();
    const float* loss_scaling = context.inputs[1].as<float>();
    float* scale = context.outputs[0].as<float>();
    const double rho = context.attributes().number("rho");
    return make_kernel([=](Stream&) {
      const double factor = loss_scaling ? *loss_scaling : 1;
      *scale =
          static_cast<float>(-rho / (std::sqrt(static_cast<double>(*square)) + 1e-12 * factor));
    });
  };
}

}  // namespace fleet
