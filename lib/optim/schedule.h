// Learning-rate schedules: functions of the training step, and for some of what evaluations
// measure.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"

namespace fleet {

// What a schedule covers, in training steps counted from the job's start: from the end of the
// warm-up to the end of the job.
struct ScheduleSpan {
  int64_t steps_per_epoch = 1;
  int64_t begin = 0, end = 1;
  // How far a step is in it, from 0 to 1.
  double part(int64_t step) const;
  // A time that settings give in this unit ("epoch" or "step"), in whole steps, at least 1.
  int64_t steps_of(double time, const std::string& unit) const;
};

// The learning rate at a step of the job, from span.begin on; beyond the end it stays.
using RateFunction = std::function<double(int64_t step)>;

// What an evaluation measured: means over all samples of all ranks.
struct Evaluated {
  double loss = 0;
  double acc1 = 0;  // share of hits, 0 to 1
};

// Follows evaluations. A function of what it observed, so that ranks that observe the same values
// have the same rate. One thread at a time.
class RateFollower {
 public:
  virtual ~RateFollower() = default;
  // Returns what is to be said where the rate changes by it, else "".
  virtual std::string observe(const Evaluated& evaluated) = 0;
  // The rate in place of the schedule's.
  virtual double follow(double rate) const = 0;
  // For a checkpoint: finite numbers. restore() is given what state() returned; false: it did not.
  virtual std::vector<double> state() const = 0;
  virtual bool restore(std::span<const double> state) = 0;
};

struct ScheduleDef {
  std::string help;  // one line
  Schema schema;     // its own keys
  std::function<RateFunction(const Settings&, const ScheduleSpan&)> make;
  // Null: the rate does not depend on evaluations.
  std::function<std::unique_ptr<RateFollower>(const Settings&)> follow;
};

Registry<ScheduleDef>& schedule_registry();
bool register_schedule(const std::string& name, void (*define)(ScheduleDef&));

// The keys of a job's "learning_rate" section for this schedule: name, its own, per, warmup_epochs,
// warmup_steps, warmup_start, scale_with_global_batch, reference_batch. kUsage for an unknown name.
Schema schedule_schema(const std::string& name);

// A schedule as a job asks for it, with its warm-up. One thread at a time.
class Schedule {
 public:
  // settings: validated by schedule_schema(); its key "name" chooses. epochs: of the job.
  // global_batch: samples a step over all ranks, for scale_with_global_batch. kUsage where values
  // do not fit together.
  Schedule(const Settings& settings, int64_t steps_per_epoch, int64_t epochs,
           int64_t global_batch = 0);
  // What the schedule's rates are multiplied with by the linear rule (Goyal et al., 2017):
  // global_batch / reference_batch, or 1. Not warmup_start.
  double scale() const { return scale_; }
  // The learning rate of training step `step`, from 0. The warm-up rises linearly from warmup_start
  // to what the schedule has where the warm-up ends. Schedules begin there, but for piecewise,
  // whose boundaries count from the job's start.
  double learning_rate(int64_t step) const;

  // Whether the rate depends on evaluations; observe() and restore() are for such schedules.
  bool follows_evaluations() const { return follower_ != nullptr; }
  // Takes an evaluation after `step` training steps into account, each step once. Returns what is
  // to be said where the rate changes by it, else "".
  std::string observe(int64_t step, const Evaluated& evaluated);
  // The step that observe() was last called with; -1: never.
  int64_t observed_step() const { return observed_step_; }
  // What a checkpoint has to keep; {}: nothing. restore() of {} starts afresh; kUsage where it is
  // another schedule's.
  std::vector<double> state() const;
  void restore(std::span<const double> state);

 private:
  RateFunction rate_;
  std::unique_ptr<RateFollower> follower_;
  int64_t observed_step_ = -1;
  int64_t warmup_steps_ = 0;
  int64_t granularity_ = 1;  // steps for which the rate is held
  double warmup_start_ = 0;
  double scale_ = 1;
};

// FLEET_SCHEDULE(cosine) { def.make = ...; } in lib/optim/cosine.cc.
#define FLEET_SCHEDULE(name)                                      \
  static void define_schedule_##name(::fleet::ScheduleDef& def);  \
  [[maybe_unused]] static const bool registered_schedule_##name = \
      ::fleet::register_schedule(#name, define_schedule_##name);  \
  static void define_schedule_##name(::fleet::ScheduleDef& def)

}  // namespace fleet
