// one_cycle: from base / div_factor up to base, then down to base / div_factor / final_div_factor,
// from the end of the warm-up to the end of the job (Smith and Topin, 2018, "Super-Convergence";
// PyTorch's OneCycleLR with max_lr = base, stepped each step). With three_phase the fall to base /
// div_factor mirrors the rise, and a last phase falls to the end. The momentum does not cycle:
// PyTorch's cycle_momentum = False.
#include <cmath>
#include <numbers>

#include "optim/schedule.h"

namespace fleet {
namespace {

struct Phase {
  double end;  // its last step, counted from the start of the cycle
  double from, to;
};

std::vector<Phase> phases_of(const Settings& settings, double steps) {
  const double base = settings.number("base"), part = settings.number("pct_start");
  const double start = base / settings.number("div_factor");
  const double end = start / settings.number("final_div_factor");
  if (!settings.boolean("three_phase")) {
    return {{part * steps - 1, start, base}, {steps - 1, base, end}};
  }
  if (part > 0.5) {
    throw Error(ErrorCode::kUsage, "pct_start is above 0.5 with three_phase", "learning_rate",
                "leave room for the fall, which is as long as the rise");
  }
  return {{part * steps - 1, start, base},
          {2 * part * steps - 2, base, start},
          {steps - 1, start, end}};
}

// step: from the start of the cycle; after the last phase the rate does not change.
double rate_at(const std::vector<Phase>& phases, double step, bool linear) {
  double begin = 0;
  for (const Phase& phase : phases) {
    if (step <= phase.end) {
      const double part = phase.end > begin ? (step - begin) / (phase.end - begin) : 1;
      if (linear) return phase.from + (phase.to - phase.from) * part;
      return phase.to + (phase.from - phase.to) / 2 * (1 + std::cos(std::numbers::pi * part));
    }
    begin = phase.end;
  }
  return phases.back().to;
}

}  // namespace

FLEET_SCHEDULE(one_cycle) {
  def.help = "the learning rate rises once to base, then falls far below its first value";
  def.schema.number("base", 0.1, 0, 1e6, "the largest learning rate")
      .number("pct_start", 0.3, 0, 1, "fraction of the steps in which the rate rises")
      .choice("anneal", "cos", {"cos", "linear"}, "shape of the rise and fall")
      .number("div_factor", 25, 1e-12, 1e12, "the first rate is base / div_factor")
      .number("final_div_factor", 1e4, 1e-12, 1e30,
              "the last rate is the first rate / final_div_factor")
      .boolean("three_phase", false, "rise, mirrored fall, then a fall to the last rate");
  def.spans_job = true;
  def.make = [](const Settings& settings, const ScheduleSpan& span) -> RateFunction {
    const auto phases = phases_of(settings, static_cast<double>(span.end - span.begin));
    return [phases, begin = span.begin, linear = settings.text("anneal") == "linear"](
               int64_t step) { return rate_at(phases, static_cast<double>(step - begin), linear); };
  };
}

}  // namespace fleet
