#include "optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace fleet {

double ScheduleSpan::part(int64_t step) const {
  return std::clamp(static_cast<double>(step - begin) / static_cast<double>(end - begin), 0.0, 1.0);
}

Registry<ScheduleDef>& schedule_registry() {
  static Registry<ScheduleDef> registry("learning-rate schedule");
  return registry;
}

bool register_schedule(const std::string& name, void (*define)(ScheduleDef&)) {
  ScheduleDef def;
  define(def);
  schedule_registry().add(name, std::move(def));
  return true;
}

Schema schedule_schema(const std::string& name) {
  const ScheduleDef& def = schedule_registry().get(name);
  Schema schema;
  schema.choice("name", name, schedule_registry().names(), def.help);
  schema.section("", def.schema);
  schema.choice("per", "step", {"step", "epoch"},
                "when the schedule moves on (warm-up: each step)");
  schema.number("warmup_epochs", 0, 0, 1e6, "epochs of linear rise before the schedule begins");
  schema.integer("warmup_steps", 0, 0, 1e12, "the same in steps, instead");
  schema.number("warmup_start", 0, 0, 1e6, "learning rate of the first step of the rise");
  return schema;
}

Schedule::Schedule(const Settings& settings, int64_t steps_per_epoch, int64_t epochs) {
  FLEET_CHECK(steps_per_epoch > 0 && epochs > 0, "a schedule of no steps");
  warmup_steps_ = settings.integer("warmup_steps");
  const double warmup_epochs = settings.number("warmup_epochs");
  if (warmup_steps_ > 0 && warmup_epochs > 0) {
    throw Error(ErrorCode::kUsage, "warmup_steps and warmup_epochs are both set", "learning_rate",
                "leave one of them out");
  }
  if (warmup_epochs > 0) {
    warmup_steps_ = std::llround(warmup_epochs * static_cast<double>(steps_per_epoch));
  }
  if (settings.given("warmup_start") && warmup_steps_ == 0) {
    throw Error(ErrorCode::kUsage, "warmup_start has no effect without a warm-up", "learning_rate",
                "set warmup_epochs or warmup_steps, or leave it out");
  }
  warmup_start_ = settings.number("warmup_start");
  granularity_ = settings.text("per") == "epoch" ? steps_per_epoch : 1;
  const ScheduleSpan span{.steps_per_epoch = steps_per_epoch,
                          .begin = warmup_steps_,
                          .end = std::max(steps_per_epoch * epochs, warmup_steps_ + 1)};
  rate_ = schedule_registry().get(settings.text("name")).make(settings, span);
}

double Schedule::learning_rate(int64_t step) const {
  if (step < warmup_steps_) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps_);
    return warmup_start_ + (rate_(warmup_steps_) - warmup_start_) * part;
  }
  return rate_(std::max(step / granularity_ * granularity_, warmup_steps_));
}

}  // namespace fleet
