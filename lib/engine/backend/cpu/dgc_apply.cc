#include <bit>

#include "backend/cpu/elementwise.h"
#include "ops/dgc.h"

namespace fleet {
namespace {

// The elements that one rank sent for one parameter.
struct Stretch {
  float* parameter;
  const int32_t* encoded;
  int64_t count;
};

// The indices of one stretch are distinct, so threads may share it.
void descend(const Stretch& stretch, float rate, float part) {
#pragma omp parallel for if (stretch.count >= cpu::kParallelElements)
  for (int64_t i = 0; i < stretch.count; ++i) {
    const float value = std::bit_cast<float>(stretch.encoded[stretch.count + i]);
    stretch.parameter[stretch.encoded[i]] -= rate * (value * part);
  }
}

}  // namespace

FLEET_KERNEL(cpu, dgc_apply) {
  def.layouts = lay_out_parameters<LayoutQuery>;
  def.create = [](KernelContext& context) {
    const auto& counts = context.attributes().integers("counts");
    const Argument& gathered = context.inputs[1];
    const int32_t *at = gathered.as<int32_t>(), *end = at + gathered.shape.elements();
    std::vector<Stretch> stretches;  // ordered by rank
    int ranks = 0;
    for (; at < end; ++ranks) {
      for (size_t i = 0; i < counts.size(); ++i) {
        stretches.push_back({context.outputs[i].as<float>(), at, counts[i]});
        at += 2 * counts[i];
      }
    }
    const float* rate = context.inputs[0].as<float>();
    const float part = 1.0f / static_cast<float>(ranks);
    return make_kernel([=, stretches = std::move(stretches)](Stream&) {
      for (const Stretch& stretch : stretches) descend(stretch, *rate, part);
    });
  };
}

}  // namespace fleet
