#include <bit>

#include "backend/cpu/elementwise.h"
#include "ops/dgc.h"

namespace fleet {
namespace {

// The elements that one rank sent for one parameter.
struct Range {
  float* parameter;
  const int32_t* encoded;
  int64_t count;
};

// The indices of one range are distinct, so threads may share it.
void descend(const Range& range, float rate, float part) {
#pragma omp parallel for if (range.count >= cpu::kParallelElements)
  for (int64_t i = 0; i < range.count; ++i) {
    const float value = std::bit_cast<float>(range.encoded[range.count + i]);
    range.parameter[range.encoded[i]] -= rate * (value * part);
  }
}

}  // namespace

FLEET_KERNEL(cpu, dgc_apply) {
  def.layouts = lay_out_parameters<LayoutQuery>;
  def.create = [](KernelContext& context) {
    const auto& counts = context.attributes().integers("counts");
    const Argument& gathered = context.inputs[1];
    const int32_t *at = gathered.as<int32_t>(), *end = at + gathered.shape.elements();
    std::vector<Range> ranges;  // ordered by rank
    int ranks = 0;
    for (; at < end; ++ranks) {
      for (size_t i = 0; i < counts.size(); ++i) {
        ranges.push_back({context.outputs[i].as<float>(), at, counts[i]});
        at += 2 * counts[i];
      }
    }
    const float* rate = context.inputs[0].as<float>();
    const float part = 1.0f / static_cast<float>(ranks);
    return make_kernel([=, ranges = std::move(ranges)](Stream&) {
      for (const Range& range : ranges) descend(range, *rate, part);
    });
  };
}

}  // namespace fleet
