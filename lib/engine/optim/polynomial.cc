// polynomial: end + (base - end) * (1 - fraction of the way)^power (Paddle's PolynomialDecay).
#include <cmath>

#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(polynomial) {
  def.help = "falls from base to end, by a power of the fraction of steps that remain";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start")
      .number("end", 0, 0, 1e6, "learning rate at the end")
      .number("power", 1, 0, 100, "power of the fraction; 1: linear");
  def.spans_job = true;
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const double base = settings.number("base"), end = settings.number("end");
    const double power = settings.number("power");
    return [=](int64_t step) { return end + (base - end) * std::pow(1 - span.part(step), power); };
  };
}

}  // namespace fleet
