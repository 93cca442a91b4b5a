// piecewise: one value up to each boundary (Paddle's PiecewiseDecay): values[i] before
// boundaries[i], the last value after all of them. If base is given, each value is multiplied by
// base / values[0].
#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace fleet {
namespace {

std::vector<int64_t> boundaries_in_steps(const Settings& settings, const ScheduleSpan& span) {
  std::vector<int64_t> steps;
  const double unit =
      settings.text("unit") == "epoch" ? static_cast<double>(span.steps_per_epoch) : 1;
  for (double boundary : settings.numbers("boundaries")) {
    steps.push_back(std::llround(boundary * unit));
  }
  return steps;
}

void scale_to_base(const Settings& settings, std::vector<double>* values) {
  if (!settings.given("base")) return;
  const double first = values->front();
  if (first <= 0) {
    throw Error(ErrorCode::kUsage, "base cannot scale values that begin with 0", "learning_rate",
                "remove base");
  }
  for (double& value : *values) value *= settings.number("base") / first;
}

}  // namespace

FLEET_SCHEDULE(piecewise) {
  def.help = "a learning rate for each piece between boundaries";
  def.schema.numbers("boundaries", {}, "points at which the next values begin, in units, ascending")
      .required();
  def.schema.numbers("values", {}, "learning rates, one more than boundaries").required();
  def.schema.number("base", 0, 0, 1e6,
                    "learning rate of the first piece; the others are scaled in proportion; if not "
                    "given, values are used unchanged");
  def.schema.choice("unit", "epoch", {"epoch", "step"},
                    "unit of boundaries, which count from the start of the job");
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const std::vector<int64_t> boundaries = boundaries_in_steps(settings, span);
    std::vector<double> values = settings.numbers("values");
    if (values.size() != boundaries.size() + 1) {
      throw Error(ErrorCode::kUsage,
                  std::to_string(values.size()) + " values for " +
                      std::to_string(boundaries.size()) + " boundaries",
                  "learning_rate", "give one value more than boundaries");
    }
    if (!std::is_sorted(boundaries.begin(), boundaries.end())) {
      throw Error(ErrorCode::kUsage, "boundaries do not ascend", "learning_rate", "sort them");
    }
    scale_to_base(settings, &values);
    return [boundaries, values](int64_t step) {
      return values[std::upper_bound(boundaries.begin(), boundaries.end(), step) -
                    boundaries.begin()];
    };
  };
}

}  // namespace fleet
