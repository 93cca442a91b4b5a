// One rank's steps: the session, what feeds it, and what ranks tell each other beside it. The
// training loop (train/trainer.h) and programs with a loop of their own (api/executor.h) both run
// on it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/pipeline.h"
#include "train/control.h"
#include "train/feeder.h"
#include "train/finite_watch.h"
#include "train/rank_state.h"
#include "train/session.h"
#include "train/step_traffic.h"

namespace fleet {

struct StepRunnerOptions {
  int rank = 0, world = 1;
  int nodes = 1;                         // that the ranks are on
  Communicator* communicator = nullptr;  // of the device; null in a job of one rank
  Communicator* control = nullptr;       // of the host; null where `communicator` is that too
  Store* store = nullptr;                // null in a job of one rank
};

// Only the thread that made it drives it. All ranks make the same calls in the same order.
class StepRunner {
 public:
  // Builds the session for images of this shape and compares its Plan with the other ranks'. The
  // device and what options points to must outlive it. Errors of Session and compare_plans().
  StepRunner(const Job& job, const Shape& image, Device& device, const StepRunnerOptions& options);

  Session& session() { return *session_; }
  Executor& executor() { return session_->executor(); }
  Control& control() { return *control_; }
  StepTraffic& traffic() { return *traffic_; }  // of the training steps
  FiniteWatch& finite_watch() { return *watch_; }

  // Once parameters and states are what training begins with: gives rank 0's to all. steps: trained
  // so far.
  void begin(int64_t steps);
  // Issues a training step. Returns when the batch's memory may be used anew; what the step
  // computes may still be on its way. Rethrows what went wrong in a communicator so far.
  //   batch  as the job's pipelines make them: its images, or pixels and flips
  //   info   step, from 0; fetch: whether its metrics will be read
  void train(const data::Batch& batch, const StepInfo& info, double learning_rate);
  // The sums of this rank's batch, with running statistics. Waits for it.
  MetricSums evaluate(const data::Batch& batch, int64_t steps);
  // Brings ranks that have drifted apart together, before an evaluation or a checkpoint.
  void bring_together(int64_t steps);

 private:
  void make_feeder();
  void feed(const data::Batch& batch, const float& rate);

  std::unique_ptr<Session> session_;
  Device& device_;
  std::optional<StepTraffic> traffic_;
  std::unique_ptr<Feeder> feeder_;
  std::vector<Feeder::Feed> feeds_;  // of the step at hand
  std::unique_ptr<Control> control_;
  std::optional<FiniteWatch> watch_;
  std::optional<RankSync> sync_;  // from begin() on
};

}  // namespace fleet
