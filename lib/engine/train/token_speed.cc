#include "train/token_speed.h"

#include "base/clock.h"
#include "base/number_text.h"
#include "cost/rates.h"

namespace fleet {

std::string TokenSpeed::text() const {
  std::string text = format_printf("tokens/s: %.0f", tokens_per_second);
  if (mfu) text += format_printf(", MFU: %.1f %%", 100 * *mfu);
  return text + ", left: " + format_duration(seconds_left);
}

void TokenSpeed::add_to(EventLine* line) const {
  line->add("tokens_per_second", tokens_per_second);
  if (mfu) line->add("mfu", *mfu);
  line->add("seconds_left", seconds_left);
}

TokenSpeedMeter::TokenSpeedMeter(StepRunner& runner, const Device& device)
    : runner_(runner), peak_(data_sheet_peak(device.name(), runner.session().precision())) {
  operations_of_plan();
}

// From the executor's selected Plan.
double TokenSpeedMeter::operations_of_plan() {
  const int selected = runner_.executor().selected();
  const auto [found, fresh] = by_plan_.try_emplace(selected, 0);
  if (!fresh) return found->second;
  const Plan& plan = runner_.executor().plan(selected);
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.section != runner_.session().training().forward) continue;
    found->second += 3 * cost_of(plan, planned).operations;
  }
  return found->second;
}

TokenSpeed TokenSpeedMeter::measure(const StepMeter& meter, int64_t steps_left) {
  const double step = meter.batch_time().mean();
  // The stages of a pipeline share their batch.
  double tokens = step > 0 ? tokens_.mean() / step / runner_.session().stages() : 0;
  runner_.step_control().sum({&tokens, 1});
  TokenSpeed speed{.tokens_per_second = tokens,
                   .mfu = std::nullopt,
                   .seconds_left = step * static_cast<double>(steps_left)};
  if (peak_ && step > 0) speed.mfu = operations_.mean() / step / *peak_;
  return speed;
}

}  // namespace fleet
