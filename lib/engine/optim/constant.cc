// constant: the learning rate never changes.
#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(constant) {
  def.help = "the learning rate never changes";
  def.schema.number("base", 0.1, 0, 1e6, "learning rate");
  def.make = [](const Settings& settings, const ScheduleSpan&) -> RateFunction {
    return [base = settings.number("base")](int64_t) { return base; };
  };
}

}  // namespace fleet
