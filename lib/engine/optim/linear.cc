// linear: a straight line from base to end. With warmup_steps or warmup_epochs it is transformers'
// get_linear_schedule_with_warmup(), the schedule of BERT.
#include "optim/schedule.h"

namespace fleet {

FLEET_SCHEDULE(linear) {
  def.help = "falls in a straight line from base to end (with a warm-up: as transformers' linear)";
  def.schema.number("base", 5e-5, 0, 1e6, "learning rate at the start")
      .number("end", 0, 0, 1e6, "learning rate at the end");
  def.spans_job = true;
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const double base = settings.number("base"), end = settings.number("end");
    return [=](int64_t step) { return end + (base - end) * (1 - span.part(step)); };
  };
}

}  // namespace fleet
