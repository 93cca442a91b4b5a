// The training loop of one rank.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "train/averaged_statistics.h"
#include "train/evaluated_weights.h"
#include "train/evaluation_policy.h"
#include "train/run_folder.h"
#include "train/step_trace.h"
#include "train/trainer_memory.h"
#include "train/training_checkpoints.h"
#include "train/training_report.h"

namespace fleet {

struct TrainerOptions {
  int rank = 0, world = 1;
  int nodes = 1;                         // number of nodes
  Communicator* communicator = nullptr;  // for device memory; null in a job of one rank
  Communicator* control = nullptr;       // for host memory; null if `communicator` uses host memory
  std::shared_ptr<Store> store;          // null in a job of one rank
  Servers servers = {};
  OpenSavedRows open_rows = {};  // for an evaluation without training of a job with tables
  std::shared_ptr<StoreExchange> exchange = nullptr;  // if trainers run apart (api/world.h)
  // This rank takes the place of a lost one: for the how manieth time, and the steps that it had
  // done. 0: it does not.
  int replacement = 0;
  int64_t replaced_step = 0;
  // A signal (not 0): stop after the next step, as agreed by all ranks.
  const std::atomic<int>* stop = nullptr;
  const std::atomic<int>* saves = nullptr;  // number of signals that asked for a checkpoint
  int terminal_width = 0;                   // standard output's; 0: plain lines
  std::string run;                          // identifies all starts of one job; "": it has only one
  bool restarted = false;                   // the launcher has started this run before
};

// Trains, evaluates and saves as the job specifies. Prints progress and results to standard output,
// and appends to metrics.jsonl (rank 0). For use by the calling thread only.
//
// It decides what happens in which order. The policies decide when to save and evaluate, StepRunner
// keeps the position of training, TrainingReport prints the results.
class Trainer {
 public:
  // Opens the data, builds the session, loads a checkpoint, and agrees with the other ranks on the
  // start.
  Trainer(const Job& job, Device& device, const TrainerOptions& options);
  // Throws NotFiniteError (train/finite_check.h) on all ranks if train.on_nan requires it, or if a
  // state to save is not finite, but errors of DivergenceCheck::compare() if the parameters of a
  // rank differ then; what this rank's data threw, and kPeerLost on the other ranks; kIo if the
  // last checkpoint cannot be saved.
  TrainResult run();
  Session& session() const { return runner_->session(); }
  // The run's; for an evaluation without training the folder of its results, "" if none.
  const std::string& folder() const { return output_; }

 private:
  void open_folder();
  bool load_start();
  void load_rows();
  bool take_place();
  void remember();
  void finish_step_of_lost();
  void log_unused_options();
  TrainResult train();
  void train_epochs();
  void train_epoch();
  void train_step(const data::Batch& batch);
  void after_step();
  void end_step();
  bool move_to_next_epoch();
  void end_epoch();
  void act_on(const std::optional<BadUpdates>& bad);
  // False: all ranks stop. Answers with the requests of the previous call, so that no rank waits
  // and all act in the same step.
  bool agree_on_step(bool works, RankCoordinator& control);
  bool meet();
  const data::Batch* next_batch(data::InputPipeline& from);
  int64_t steps_to_train();
  [[noreturn]] void end_for_failure();
  void save_if_asked();
  void evaluate(int64_t epoch);
  bool gave_up(bool own);
  void end_service();
  bool follow(const MetricSums& evaluated);
  bool is_leader() const { return options_.rank == 0; }

  const Job job_;
  const TrainingIntervals intervals_{job_};
  const bool evaluates_only_ = job_.train.boolean("evaluate_only");
  Device& device_;
  const TrainerOptions options_;
  std::unique_ptr<RunFolder> run_folder_;  // on rank 0
  std::string output_;                     // its path, on all ranks
  EvaluatedWeights evaluated_weights_;     // if the job only evaluates
  std::unique_ptr<JobData> data_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<EvaluationTracker> tracker_;
  std::optional<EvaluationPolicy> evaluations_;
  CheckpointPolicy saves_{job_};
  std::unique_ptr<TrainingReport> report_;
  std::unique_ptr<DivergenceCheck> divergence_;  // null: no comparison
  std::unique_ptr<TrainingCheckpoints> checkpoints_;
  std::unique_ptr<AveragedStatistics> statistics_;
  std::unique_ptr<StepTrace> trace_;
  StepTotalsMeter totals_;
  std::unique_ptr<TrainerMemories> memories_;  // null: no process can take this rank's place
  bool unfinished_step_ = false;               // the lost rank may have missed its evaluation
  int64_t evaluated_step_ = -1;
  struct LostSamples {
    int64_t repeated = 0, missing = 0;  // trained again; not on all servers
  };
  std::optional<LostSamples> lost_;         // with the process whose place this one has taken
  int64_t trained_samples_ = 0;             // by this rank since the start, without padding
  std::exception_ptr failure_;              // from this rank's data
  bool met_stop_ = false;                   // trainers that run apart have agreed to stop
  bool met_at_end_ = false;                 // they have met after the last step
  bool ends_ = false;                       // on all ranks: some rank cannot continue
  CheckpointRequests checkpoint_requests_;  // by signals
  bool save_asked_ = false;                 // requested, not done yet
  TrainResult result_;
};

}  // namespace fleet
