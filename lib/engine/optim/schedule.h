// Learning-rate schedules: functions of the training step; some also depend on evaluations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"

namespace fleet {

// The range of a schedule, in training steps counted from the job's start: from the end of the
// warm-up to the end of the job.
struct ScheduleSpan {
  int64_t steps_per_epoch = 1;
  int64_t begin = 0, end = 1;
  // The position of a step within the span, from 0 to 1.
  double part(int64_t step) const;
  // Converts a time in this unit ("epoch" or "step") to whole steps, at least 1.
  int64_t steps_of(double time, const std::string& unit) const;
};

// The learning rate at a step of the job, from span.begin on; after the end it does not change.
using RateFunction = std::function<double(int64_t step)>;

// The results of an evaluation: means over all samples of all ranks.
struct EvaluationResult {
  double loss = 0;
  double headline = 0;  // the task's main metric besides the loss; larger is better
};

// Adjusts the rate after evaluations. Depends only on the observed values, so ranks that observe
// the same values have the same rate. Not thread-safe.
class RateAdjuster {
 public:
  virtual ~RateAdjuster() = default;
  // Returns a line for the log if this changes the rate, else "".
  virtual std::string observe(const EvaluationResult& evaluated) = 0;
  // The rate to use instead of the schedule's.
  virtual double adjust(double rate) const = 0;
  // For a checkpoint: finite numbers. restore() takes what state() returned; false if the values do
  // not come from it.
  virtual std::vector<double> state() const = 0;
  virtual bool restore(std::span<const double> state) = 0;
};

struct ScheduleDef {
  std::string help;        // one line
  Schema schema;           // its own keys
  bool spans_job = false;  // the rate depends on the end of the job
  std::function<RateFunction(const Settings&, const ScheduleSpan&)> make;
  // Null: the rate does not depend on evaluations.
  std::function<std::unique_ptr<RateAdjuster>(const Settings&)> make_adjuster;
};

Registry<ScheduleDef>& schedule_registry();

// The keys of a job's "learning_rate" section for this schedule: name, its own, per, warmup_epochs,
// warmup_steps, warmup_start, scale_with_global_batch, reference_batch. kUsage for an unknown name.
Schema schedule_schema(const std::string& name);

// Whether the rates depend on the number of steps of an epoch. settings: as for Schedule.
bool counts_epochs(const Settings& settings);
// The rate that the others are relative to: the key "base", or, of a piecewise schedule without it,
// the first value.
double base_rate(const Settings& settings);

// The end of a job with another rate: from its first step on, the rate changes from the schedule's
// at that step to `rate` within `steps` steps, and then stays. With t, the position from 0 to 1:
//   rate a + first (1 - a),  a = (1 - cos(pi t)) / 2, or t if linear
// as torch.optim.swa_utils.SWALR. Evaluations after that step do not change the rate.
struct RateEnding {
  int64_t from = 0;  // the first step of an epoch
  int64_t steps = 0;
  double rate = 0;  // Schedule::scale() applies to it
  bool linear = false;
};

// A schedule as configured by a job, with its warm-up. Not thread-safe.
class Schedule {
 public:
  // settings: validated by schedule_schema(); the key "name" chooses the schedule. epochs,
  // max_steps: the job's; the span of the schedule ends with the first of them (max_steps 0: with
  // the epochs). global_batch: samples per step over all ranks, for scale_with_global_batch. kUsage
  // if values contradict each other.
  Schedule(const Settings& settings, int64_t steps_per_epoch, int64_t epochs,
           int64_t global_batch = 0, int64_t max_steps = 0);
  void set_ending(const RateEnding& ending) { ending_ = ending; }
  // The factor for the schedule's rates by the linear rule (Goyal et al., 2017): global_batch /
  // reference_batch, or 1. Does not apply to warmup_start.
  double scale() const { return scale_; }
  // The learning rate of training step `step`, from 0. The warm-up rises linearly from warmup_start
  // to the schedule's rate at the end of the warm-up. Schedules begin there, except piecewise,
  // whose boundaries count from the job's start.
  double learning_rate(int64_t step) const;
  // The last step of the span if the rates depend on it and max_steps, not the epochs, sets it; 0
  // otherwise.
  int64_t shortened_end() const { return shortened_end_; }

  // Whether the rate depends on evaluations; observe() and restore() are for such schedules.
  bool depends_on_evaluations() const { return adjuster_ != nullptr; }
  // Takes an evaluation after `step` training steps into account, once per step. Returns a line for
  // the log if this changes the rate, else "".
  std::string observe(int64_t step, const EvaluationResult& evaluated);
  // The step of the last observe() call; -1: none.
  int64_t observed_step() const { return observed_step_; }
  // The state to keep in a checkpoint; {}: none. restore() of {} starts at the beginning; kUsage if
  // the state is of another schedule.
  std::vector<double> state() const;
  void restore(std::span<const double> state);

 private:
  double scheduled_rate(int64_t step) const;  // without the ending

  RateFunction rate_;
  std::unique_ptr<RateAdjuster> adjuster_;
  int64_t observed_step_ = -1;
  int64_t warmup_steps_ = 0;
  int64_t shortened_end_ = 0;
  int64_t granularity_ = 1;  // number of steps for which the rate is constant
  double warmup_start_ = 0;
  double scale_ = 1;
  std::optional<RateEnding> ending_;
};

// FLEET_SCHEDULE(cosine) { def.make = ...; } in lib/engine/optim/cosine.cc.
#define FLEET_SCHEDULE(name)                                                                      \
  FLEET_REGISTER(schedule_##name, ::fleet::ScheduleDef& def, ::fleet::schedule_registry().define, \
                 #name)

}  // namespace fleet
