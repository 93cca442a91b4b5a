// Runs the steps of one rank and knows how far training has come: combines the session, its device
// prefetcher, the schedule, and the control messages between ranks. The training loop
// (train/trainer.h) and programs with their own loop (api/executor.h) both use it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "data/pipeline.h"
#include "optim/schedule.h"
#include "train/checkpoint.h"
#include "train/device_prefetcher.h"
#include "train/finite_check.h"
#include "train/job_data.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"
#include "train/session.h"
#include "train/step_traffic.h"

namespace fleet {

// For a program that makes its own batches.
struct OwnBatches {
  std::vector<Column> columns;
  int64_t batches = 1;  // in an epoch
};

struct StepRunnerOptions {
  int rank = 0, world = 1;
  int nodes = 1;                         // number of nodes
  Communicator* communicator = nullptr;  // for device memory; null in a job of one rank
  Communicator* control = nullptr;       // for host memory; null if `communicator` uses host memory
  Store* store = nullptr;                // null in a job of one rank
  OwnBatches own = {};                   // used without JobData
};

// For use by the thread that created it. All ranks make the same calls in the same order.
class StepRunner {
 public:
  // Builds the session for the images of these data and compares its Plan with the other ranks'.
  // data: null if the caller makes its own batches. The job, the device and the objects that
  // options points to must outlive it. Errors of Session, compare_plans() and Schedule.
  StepRunner(const Job& job, JobData* data, Device& device, const StepRunnerOptions& options);

  Session& session() { return *session_; }
  Executor& executor() { return session_->executor(); }
  RankCoordinator& control() { return *control_; }
  StepTraffic& traffic() { return *traffic_; }  // in training steps
  FiniteCheck& finite_check() { return *watch_; }
  Schedule& schedule() { return *schedule_; }
  // train() advances it within an epoch; the caller ends epochs.
  TrainingPosition& position() { return position_; }

  // Call when parameters and states have their initial values: broadcasts rank 0's.
  void begin();
  // Issues a training step. Returns when the batch's memory may be reused; the step may still be
  // running. Rethrows errors of a communicator so far.
  //   batch  from the job's pipelines: its columns have the names of the feeds
  //   fetch  whether the step's metrics will be read
  void train(const data::Batch& batch, bool fetch, double learning_rate);
  // Returns the sums of this rank's batch, computed with running statistics. Waits for it.
  MetricSums evaluate(const data::Batch& batch);
  // Shows the schedule an evaluation over all ranks. Returns a line for the log if the rate
  // changes, else "".
  std::string observe(const MetricSums& evaluated);
  // Brings ranks that have drifted apart together, before an evaluation or a checkpoint.
  void sync_ranks();
  // Goes on from the position of a checkpoint whose values were loaded. Returns changed_data().
  std::string resume(const TrainingPosition& saved);

 private:
  void make_prefetcher();
  void check_order(const data::Batch& batch);
  void feed(const data::Batch& batch, const float& rate);

  std::unique_ptr<Session> session_;
  Device& device_;
  const int rank_;
  int64_t epoch_batches_ = 0;  // 0: the caller makes its own batches
  bool warned_of_order_ = false;
  std::optional<StepTraffic> traffic_;
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::vector<TrainingFeed> fed_;              // in the prefetcher's order
  std::vector<DevicePrefetcher::Feed> feeds_;  // the current step's
  std::unique_ptr<RankCoordinator> control_;
  std::optional<FiniteCheck> watch_;
  std::optional<RankSync> sync_;  // set by begin()
  std::optional<Schedule> schedule_;
  TrainingPosition position_;
};

}  // namespace fleet
