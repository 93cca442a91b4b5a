// cosine: end + (base - end) / 2 * (1 + cos(pi * fraction of the way)) (Loshchilov and Hutter,
// 2017, without restarts; Paddle's CosineAnnealingDecay).
#include <cmath>
#include <numbers>

#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(cosine) {
  def.help = "half a cosine from base to end";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate at the start")
      .number("end", 0, 0, 1e6, "learning rate at the end");
  def.spans_job = true;
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    return [base = settings.number("base"), end = settings.number("end"), span](int64_t step) {
      return end + (base - end) / 2 * (1 + std::cos(std::numbers::pi * span.part(step)));
    };
  };
}

}  // namespace fleet
