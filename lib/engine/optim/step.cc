// step: base * gamma^(whole periods passed since the warm-up) (PyTorch's StepLR, Paddle's
// StepDecay).
#include <cmath>

#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(step) {
  def.help = "the learning rate falls by a factor after each period";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate of the first period")
      .number("gamma", 0.1, 0, 1e6, "factor per period")
      .number("period", 30, 1e-6, 1e12, "length of a period, in units")
      .choice("unit", "epoch", {"epoch", "step"}, "unit of period");
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const int64_t period = span.steps_of(settings.number("period"), settings.text("unit"));
    return [base = settings.number("base"), gamma = settings.number("gamma"), period,
            begin = span.begin](int64_t step) {
      const int64_t periods = (step - begin) / period;
      return base * std::pow(gamma, static_cast<double>(periods));
    };
  };
}

}  // namespace fleet
