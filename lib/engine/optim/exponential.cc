// exponential: base * gamma^(units passed since the warm-up), including fractions of units: smooth
// within an epoch. With per = epoch and unit = epoch it is PyTorch's ExponentialLR, stepped once
// per epoch.
#include <cmath>

#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(exponential) {
  def.help = "the learning rate falls smoothly, by a factor per unit";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start")
      .number("gamma", 0.95, 0, 1e6, "factor per unit")
      .choice("unit", "epoch", {"epoch", "step"},
              "time in which the rate falls by the factor gamma");
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const bool by_epoch = settings.text("unit") == "epoch";
    const double unit = by_epoch ? static_cast<double>(span.steps_per_epoch) : 1;
    return [base = settings.number("base"), gamma = settings.number("gamma"), unit,
            begin = span.begin](int64_t step) {
      return base * std::pow(gamma, static_cast<double>(step - begin) / unit);
    };
  };
}

}  // namespace fleet
