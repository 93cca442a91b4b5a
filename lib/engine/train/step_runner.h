// Runs the steps of one rank and knows how far training has come: combines the session, its device
// prefetcher, the schedule, and the control messages between ranks. The training loop
// (train/trainer.h) and programs with their own loop (api/executor.h) both use it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/pipeline.h"
#include "optim/schedule.h"
#include "train/averaged_weights.h"
#include "train/checkpoint.h"
#include "train/device_prefetcher.h"
#include "train/finite_check.h"
#include "train/job_data.h"
#include "train/rank_coordinator.h"
#include "train/rank_state.h"
#include "train/saved_row_feed.h"
#include "train/served_job.h"
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
  Servers servers = {};
};

// For use by the thread that created it. All ranks make the same calls in the same order, but if
// trainers run apart(), only those of sync_ranks(kEvaluation) and evaluate().
class StepRunner {
 public:
  // Builds the session for the images of these data and compares its Plan with the other ranks'.
  // data: null if the caller makes its own batches. The job, the device and the objects that
  // options points to must outlive it. Errors of Session, compare_plans() and Schedule.
  StepRunner(const Job& job, JobData* data, Device& device, const StepRunnerOptions& options);

  Session& session() { return *session_; }
  Executor& executor() { return session_->executor(); }
  RankCoordinator& control() { return *control_; }
  // Whether trainers of parameter servers do not wait for each other in a step (async, geo).
  bool apart() const { return apart_ != nullptr; }
  // For what happens in steps: control(), or this rank's own if trainers run apart.
  RankCoordinator& step_control() { return apart_ ? *apart_ : *control_; }
  // Samples of one update of the parameters.
  int64_t update_samples() const { return update_samples_; }
  StepTraffic& traffic() { return *traffic_; }  // in training steps
  // What this rank measured of its parameter servers since the previous call.
  void add_exchange(EventLine* line) {
    if (exchange_) exchange_->add_to(line);
  }
  FiniteCheck& finite_check() { return *watch_; }
  Schedule& schedule() { return *schedule_; }
  // train() advances it within an epoch; the caller ends epochs.
  TrainingPosition& position() { return position_; }

  // Call when parameters and states have their initial values: broadcasts rank 0's, or gives them
  // to the parameter servers.
  void begin();
  // Issues a training step. Returns when the batch's memory may be reused; the step may still be
  // running. Rethrows errors of a communicator so far.
  //   batch  from the job's pipelines: its columns have the names of the feeds
  //   fetch  whether the step's metrics will be read
  void train(const data::Batch& batch, bool fetch, double learning_rate);
  // Returns the sums of this rank's batch, computed with running statistics. Waits for it.
  MetricSums evaluate(const data::Batch& batch);
  // Takes the statistics of this rank's batch into those for averaged weights (optim/swa.h).
  // number: the batch's, which keys its dropout.
  void take_statistics(const data::Batch& batch, int64_t number);
  // Shows the schedule an evaluation over all ranks. Returns a line for the log if the rate
  // changes, else "".
  std::string observe(const MetricSums& evaluated);
  // Instead of begin(), on a trainer that takes the place of a lost one: receives the servers'
  // values, and continues after the last step that they know. remembered, shares: the lost one's
  // (train/trainer_memory.h).
  ParameterExchange::TakenPlace take_place(const TrainingPosition& remembered, uint64_t shares);
  uint64_t shares() const { return exchange_ ? exchange_->shares() : 0; }
  // Brings ranks that have drifted apart together, before an evaluation or a checkpoint. For a
  // checkpoint, rank 0 receives the optimizer's states from parameter servers. Trainers that run
  // apart do nothing for a checkpoint, except rank 0.
  enum class SyncFor { kEvaluation, kCheckpoint };
  void sync_ranks(SyncFor what);
  // Trainers that run apart come together here, before evaluations and at the end; the servers then
  // have all updates, and no trainer's step waits for this one. stop: the signal that stops this
  // rank, or 0. Returns the first rank's signal that is not 0.
  int meet(int stop);
  // ParameterExchange::on_wait().
  void on_wait(std::function<void()> call) {
    if (exchange_) exchange_->on_wait(std::move(call));
  }
  // Training has ended as planned: parameter servers no longer wait for this rank.
  void finish();
  // Goes on from the position of a checkpoint whose values were loaded. Returns changed_data() and
  // input_difference().
  // merged_rows: this rank's (LoadOptions).
  std::string resume(const TrainingPosition& saved, const std::string& folder = {},
                     std::vector<MergedRows> merged_rows = {});
  // ParameterExchange::shrink_tables(), if there are servers.
  bool shrink_tables(int64_t age) { return exchange_ && exchange_->shrink_tables(age); }
  // The rows that evaluate() reads, without parameter servers.
  void set_rows(std::unique_ptr<EvaluatedRows> rows) { evaluated_rows_ = std::move(rows); }
  // For the checkpoints of tables on parameter servers; without them, nulls.
  MoreFiles table_files();

 private:
  void make_prefetcher();
  void select(const data::Batch& batch, int64_t epoch, int64_t done);
  void check_order(const data::Batch& batch);
  void set_means(const data::Batch& batch);
  void feed(const data::Batch& batch, const float& rate);
  void feed_rows(const data::Batch& batch, bool evaluation);
  void update_on_servers(double rate);

  std::unique_ptr<Session> session_;
  Device& device_;
  const int rank_, world_;
  int64_t epoch_batches_ = 0;  // 0: the caller makes its own batches
  int64_t phase_batches_ = 1;  // in an epoch
  SwaSteps swa_;
  int phase_ = 0;  // the last step's phase of training (train/freezing.h)
  bool warned_of_order_ = false;
  std::optional<StepTraffic> traffic_;
  std::unique_ptr<DevicePrefetcher> prefetcher_;
  std::vector<TrainingFeed> fed_;              // in the prefetcher's order
  std::vector<DevicePrefetcher::Feed> feeds_;  // the current step's
  std::map<std::string, float> means_;         // values of TrainingFeed::mean_of
  std::unique_ptr<RankCoordinator> control_;
  std::unique_ptr<RankCoordinator> apart_;  // has only this rank; null: steps are common
  int64_t update_samples_ = 0;
  std::optional<FiniteCheck> watch_;
  std::optional<RankSync> sync_;                 // set by begin()
  std::unique_ptr<ParameterExchange> exchange_;  // null without parameter servers
  std::unique_ptr<EvaluatedRows> evaluated_rows_;
  std::string resumed_;                  // the folder of the checkpoint; "": none
  std::vector<MergedRows> merged_rows_;  // that checkpoint's
  bool synchronized_ = false;            // since the last step
  std::optional<Schedule> schedule_;
  TrainingPosition position_;
};

}  // namespace fleet
