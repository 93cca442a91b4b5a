#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fleet {

double ScheduleSpan::part(int64_t step) const {
  return std::clamp(static_cast<double>(step - begin) / static_cast<double>(end - begin), 0.0, 1.0);
}

int64_t ScheduleSpan::steps_of(double time, const std::string& unit) const {
  const double steps = unit == "epoch" ? time * static_cast<double>(steps_per_epoch) : time;
  return std::max<int64_t>(1, std::llround(steps));
}

Registry<ScheduleDef>& schedule_registry() {
  static Registry<ScheduleDef> registry("learning-rate schedule");
  return registry;
}

Schema schedule_schema(const std::string& name) {
  const ScheduleDef& def = schedule_registry().get(name);
  return Schema()
      .choice("name", name, schedule_registry().names(), def.help)
      .section("", def.schema)
      .choice("per", "step", {"step", "epoch"},
              "how often the schedule advances; a warm-up advances at each step")
      .number("warmup_epochs", 0, 0, 1e6,
              "epochs of warm-up, a linear rise before the schedule begins")
      .integer("warmup_steps", 0, 0, 1e12, "steps of warm-up, instead of warmup_epochs")
      .number("warmup_start", 0, 0, 1e6, "learning rate of the first step of the warm-up")
      .boolean("scale_with_global_batch", false,
               "multiply the schedule's rates by data.batch_size x ranks / reference_batch")
      .integer("reference_batch", 256, 1, 1e12,
               "global batch size for which the rates are meant, with scale_with_global_batch");
}

bool counts_epochs(const Settings& settings) {
  const ScheduleDef& def = schedule_registry().get(settings.text("name"));
  const auto& keys = def.schema.keys();
  const bool has_unit = std::any_of(keys.begin(), keys.end(),
                                    [](const ConfigKey& key) { return key.path == "unit"; });
  if (settings.number("warmup_epochs") > 0 || def.spans_job) return true;
  return has_unit && (settings.text("unit") == "epoch" || settings.text("per") == "epoch");
}

double base_rate(const Settings& settings) {
  if (settings.has("values") && !settings.given("base")) {
    const std::vector<double> values = settings.numbers("values");
    return values.empty() ? 0 : values.front();
  }
  return settings.number("base");
}

static double scale_of(const Settings& settings, int64_t global_batch) {
  if (!settings.boolean("scale_with_global_batch")) {
    if (!settings.given("reference_batch")) return 1;
    throw Error(ErrorCode::kUsage, "reference_batch has no effect without scale_with_global_batch",
                "learning_rate", "set both or neither");
  }
  FLEET_CHECK(global_batch > 0, "the global batch is not known");
  return static_cast<double>(global_batch) /
         static_cast<double>(settings.integer("reference_batch"));
}

Schedule::Schedule(const Settings& settings, int64_t steps_per_epoch, int64_t epochs,
                   int64_t global_batch, int64_t max_steps)
    : scale_(scale_of(settings, global_batch)) {
  FLEET_CHECK(steps_per_epoch > 0 && epochs > 0, "a schedule without steps");
  warmup_steps_ = settings.integer("warmup_steps");
  const double warmup_epochs = settings.number("warmup_epochs");
  if (warmup_steps_ > 0 && warmup_epochs > 0) {
    throw Error(ErrorCode::kUsage, "warmup_steps and warmup_epochs are both set", "learning_rate",
                "remove one of them");
  }
  if (warmup_epochs > 0) {
    warmup_steps_ = std::llround(warmup_epochs * static_cast<double>(steps_per_epoch));
  }
  if (settings.given("warmup_start") && warmup_steps_ == 0) {
    throw Error(ErrorCode::kUsage, "warmup_start has no effect without a warm-up", "learning_rate",
                "set warmup_epochs or warmup_steps, or remove it");
  }
  warmup_start_ = settings.number("warmup_start");
  granularity_ = settings.text("per") == "epoch" ? steps_per_epoch : 1;
  const ScheduleDef& def = schedule_registry().get(settings.text("name"));
  int64_t end = steps_per_epoch * epochs;
  if (max_steps > 0 && max_steps < end) {
    end = max_steps;
    if (def.spans_job) shortened_end_ = max_steps;
  }
  const ScheduleSpan span{.steps_per_epoch = steps_per_epoch,
                          .begin = warmup_steps_,
                          .end = std::max(end, warmup_steps_ + 1)};
  if (def.make_adjuster) adjuster_ = def.make_adjuster(settings);
  rate_ = [rate = def.make(settings, span), scale = scale_](int64_t step) {
    return scale * rate(step);
  };
}

double Schedule::learning_rate(int64_t step) const {
  if (!ending_ || step < ending_->from) return scheduled_rate(step);
  const int64_t done = (step - ending_->from) / granularity_ * granularity_;
  const double end = scale_ * ending_->rate;
  if (done >= ending_->steps) return end;
  const double t = static_cast<double>(done) / static_cast<double>(ending_->steps);
  const double part = ending_->linear ? t : (1 - std::cos(std::numbers::pi * t)) / 2;
  return end * part + scheduled_rate(ending_->from) * (1 - part);
}

double Schedule::scheduled_rate(int64_t step) const {
  const auto scheduled = [&](int64_t at) {
    const double rate = rate_(at);
    return adjuster_ ? adjuster_->adjust(rate) : rate;
  };
  if (step < warmup_steps_) {
    const double part = static_cast<double>(step) / static_cast<double>(warmup_steps_);
    return warmup_start_ + (scheduled(warmup_steps_) - warmup_start_) * part;
  }
  return scheduled(std::max(step / granularity_ * granularity_, warmup_steps_));
}

std::string Schedule::observe(int64_t step, const EvaluationResult& evaluated) {
  if (!adjuster_ || step == observed_step_) return "";
  observed_step_ = step;
  if (ending_ && step > ending_->from) return "";
  return adjuster_->observe(evaluated);
}

std::vector<double> Schedule::state() const {
  if (!adjuster_) return {};
  std::vector<double> state = adjuster_->state();
  state.insert(state.begin(), static_cast<double>(observed_step_));
  return state;
}

void Schedule::restore(std::span<const double> state) {
  if (!adjuster_ || state.empty()) return;
  observed_step_ = static_cast<int64_t>(state[0]);
  if (adjuster_->restore(state.subspan(1))) return;
  throw Error(ErrorCode::kUsage, "the checkpoint has another schedule", "learning_rate",
              "set the schedule of that training, or checkpoint.weights to start a new run");
}

}  // namespace fleet
