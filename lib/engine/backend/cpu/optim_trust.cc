// Updates whose rate depends on sums over a whole parameter (optim/trust_rules.h).
#include "backend/cpu/optim_update.h"
#include "optim/trust_rules.h"

namespace fleet {
namespace {

using cpu::UpdateChunks;
using Stretch = cpu::UpdateChunks::Stretch;
using Sums = UpdateChunks::Sums;

// Sums in double do not show the order of the elements, which differs with the layout, once they
// are rounded to the float32 of a rate.
template <typename Constants, size_t... s>
FLEET_SIMD Sums measure(const Stretch& at, Constants constants, std::index_sequence<s...>) {
  const float *parameter = at.parameter, *gradient = at.gradient;
  float* const states[] = {at.state(s)...};
  double first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
  for (int64_t i = 0; i < at.count; ++i) {
    const TrustTerms terms = constants.measure(parameter[i], gradient[i], states[s][i]...);
    first += terms.first;
    second += terms.second;
  }
  return {first, second};
}

template <typename Constants, size_t... s>
FLEET_SIMD void update(const Stretch& at, Constants constants, float rate,
                       std::index_sequence<s...>) {
  float* parameter = at.parameter;
  const float* gradient = at.gradient;
  float* const states[] = {at.state(s)...};
#pragma omp simd
  for (int64_t i = 0; i < at.count; ++i) {
    constants.update(parameter[i], gradient[i], rate, states[s][i]...);
  }
}

// The rule, and the memory of a step.
template <typename Rule>
struct Trust {
  explicit Trust(KernelContext& context) : chunks(context), rule(rule_of<Rule>(context)) {}

  void operator()(Stream&) {
    constexpr std::make_index_sequence<Rule::kStates> states;
    const auto k = rule.at(chunks.gradient_scale());
    const float rate = chunks.learning_rate();
    if (!rule.needs_sums()) {
      return chunks.run([=](const Stretch& at) { update(at, k, rate, states); });
    }
    chunks.run_measured([=](const Stretch& at) { return measure(at, k, states); },
                        [&](const Stretch& at, const Sums& sums) {
                          update(at, k, rule.rate_of(rate, sums.first, sums.second), states);
                        },
                        scratch);
  }

  UpdateChunks chunks;
  Rule rule;
  std::vector<Sums> scratch;
};

template <typename Rule>
void define_trust(KernelDef& def) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) { return make_kernel(Trust<Rule>(context)); };
}

}  // namespace

FLEET_KERNEL(cpu, lamb) { define_trust<LambRule<double>>(def); }
FLEET_KERNEL(cpu, lars) { define_trust<LarsRule<double>>(def); }

}  // namespace fleet
