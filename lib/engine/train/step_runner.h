// Runs the steps of one rank: combines the session, its device prefetcher, and the control messages
// between ranks. The training loop (train/trainer.h) and programs with their own loop
// (api/executor.h) both use it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/pipeline.h"
#include "train/device_prefetcher.h"
#include "train/finite_check.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"
#include "train/session.h"
#include "train/step_traffic.h"

namespace fleet {

struct StepRunnerOptions {
  int rank = 0, world = 1;
  int nodes = 1;                         // number of nodes
  Communicator* communicator = nullptr;  // for device memory; null in a job of one rank
  Communicator* control = nullptr;       // for host memory; null if `communicator` uses host memory
  Store* store = nullptr;                // null in a job of one rank
};

// For use by the thread that created it. All ranks make the same calls in the same order.
class StepRunner {
 public:
  // Builds the session for images of this shape and compares its Plan with the other ranks'. The
  // device and the objects that options points to must outlive it. Errors of Session and
  // compare_plans().
  StepRunner(const Job& job, const Shape& image, Device& device, const StepRunnerOptions& options);

  Session& session() { return *session_; }
  Executor& executor() { return session_->executor(); }
  RankCoordinator& control() { return *control_; }
  StepTraffic& traffic() { return *traffic_; }  // in training steps
  FiniteCheck& finite_check() { return *watch_; }

  // Call when parameters and states have their initial values: broadcasts rank 0's. steps: trained
  // so far.
  void begin(int64_t steps);
  // Issues a training step. Returns when the batch's memory may be reused; the step may still be
  // running. Rethrows errors of a communicator so far.
  //   batch  from the job's pipelines: its images, or pixels and flips
  //   info   step, from 0; fetch: whether its metrics will be read
  void train(const data::Batch& batch, const StepInfo& info, double learning_rate);
  // Returns the sums of this rank's batch, computed with running statistics. Waits for it.
  MetricSums evaluate(const data::Batch& batch, int64_t steps);
  // Brings ranks that have drifted apart together, before an evaluation or a checkpoint.
  void sync_ranks(int64_t steps);

 private:
  void make_prefetcher();
  void feed(const data::Batch& batch, const float& rate);

  std::unique_ptr<Session> session_;
  Device& device_;
  std::optional<StepTraffic> traffic_;
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::vector<DevicePrefetcher::Feed> feeds_;  // the current step's
  std::unique_ptr<RankCoordinator> control_;
  std::optional<FiniteCheck> watch_;
  std::optional<RankSync> sync_;  // set by begin()
};

}  // namespace fleet
