#include <cmath>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet {
namespace {

enum class Change { kStep, kAverage, kFirst, kAdapt };

__global__ void note(Change change, float init, const float* loss, const float* rate,
                     float* steps) {
  if (change == Change::kStep) {
    steps[3] += 1;
  } else if (change == Change::kAverage) {
    steps[3] = 0;
  } else if (std::isfinite(*loss)) {
    if (change == Change::kFirst || steps[0] == 0) {
      steps[0] = *loss;
      steps[1] = *rate;
    }
    if (change == Change::kFirst) return;
    const float square = steps[1] * *loss / (*rate * steps[0]) * init;
    const float root = square > 1 ? ceilf(sqrtf(square)) : 1.0f;
    steps[2] = root < 16 ? root : 16.0f;
  }
}

}  // namespace

FLEET_KERNEL(cuda, local_steps) {
  def.create = [](KernelContext& context) {
    const std::string& name = context.attributes().text("event");
    const Change change = name == "step"      ? Change::kStep
                          : name == "average" ? Change::kAverage
                          : name == "first"   ? Change::kFirst
                                              : Change::kAdapt;
    const auto init = static_cast<float>(context.attributes().integer("init_steps"));
    const float* loss = context.inputs[1].as<const float>();
    const float* rate = context.inputs[2].as<const float>();
    float* steps = context.outputs[0].as<float>();
    FLEET_CHECK(context.inputs[0].data == steps, "local_steps works in place");
    return make_kernel([=](Stream& stream) {
      cuda::launch(note, 1, 1, 0, cuda::stream_of(stream), change, init, loss, rate, steps);
    });
  };
}

}  // namespace fleet
