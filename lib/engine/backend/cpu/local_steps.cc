#include <algorithm>
#include <cmath>

#include "exec/kernel.h"

namespace fleet {

FLEET_KERNEL(cpu, local_steps) {
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    float* steps = context.outputs[0].as<float>();
    const float *loss = context.inputs[1].as<float>(), *rate = context.inputs[2].as<float>();
    const std::string& event = context.attributes().text("event");
    const auto init = static_cast<float>(context.attributes().integer("init_steps"));
    FLEET_CHECK(context.inputs[0].data == steps, "local_steps works in place");
    if (event == "step") return make_kernel([=](Stream&) { steps[3] += 1; });
    if (event == "average") return make_kernel([=](Stream&) { steps[3] = 0; });
    const bool adapts = event == "adapt";
    return make_kernel([=](Stream&) {
      if (!std::isfinite(*loss)) return;
      if (!adapts || steps[0] == 0) {
        steps[0] = *loss;
        steps[1] = *rate;
      }
      if (!adapts) return;
      const float square = steps[1] * *loss / (*rate * steps[0]) * init;
      steps[2] = square > 1 ? std::min(16.0f, std::ceil(std::sqrt(square))) : 1;
    });
  };
}

}  // namespace fleet
