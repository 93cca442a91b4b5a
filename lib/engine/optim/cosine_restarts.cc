// cosine_restarts: half a cosine from base to end, repeated; each period is period_factor times as
// long as the one before (Loshchilov and Hutter, 2017, SGDR; PyTorch's CosineAnnealingWarmRestarts
// with T_0 = period, T_mult = period_factor, eta_min = end, stepped with fractions of epochs). The
// first period begins at the end of the warm-up.
#include <cmath>
#include <numbers>

#include "optim/schedule.h"

namespace fleet {
namespace {

// The position of `passed` within its period, from 0 to below 1.
double part_of_period(double passed, double period, double factor) {
  while (passed >= period) {
    passed -= period;
    period *= factor;
    if (factor == 1) return std::fmod(passed, period) / period;
  }
  return passed / period;
}

}  // namespace

FLEET_SCHEDULE(cosine_restarts) {
  def.help = "half a cosine from base to end, which starts over after each period";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start of a period")
      .number("end", 0, 0, 1e6, "learning rate at the end of a period")
      .number("period", 10, 1e-6, 1e12, "length of the first period, in units")
      .number("period_factor", 1, 1, 1e6, "length of each period relative to the previous one")
      .choice("unit", "epoch", {"epoch", "step"}, "unit of period");
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const auto period =
        static_cast<double>(span.steps_of(settings.number("period"), settings.text("unit")));
    const double base = settings.number("base"), end = settings.number("end");
    const double factor = settings.number("period_factor");
    return [=, begin = span.begin](int64_t step) {
      const double part = part_of_period(static_cast<double>(step - begin), period, factor);
      return end + (base - end) / 2 * (1 + std::cos(std::numbers::pi * part));
    };
  };
}

}  // namespace fleet
