// polynomial: end + (base - end) * (1 - step / steps)^power (Paddle's PolynomialDecay).
#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(polynomial) {
  def.help = "from base to end as a power of what is left";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start")
      .number("end", 0, 0, 1e6, "learning rate at the end")
      .number("power", 1, 0, 100, "1: linear");
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    return
        [base = settings.number("base"), end = settings.number("end"),
         power = settings.number("power"), steps = static_cast<double>(span.steps)](int64_t step) {
          const double left = std::max(1 - static_cast<double>(step) / steps, 0.0);
          return end + (base - end) * std::pow(left, power);
        };
  };
}

}  // namespace fleet
