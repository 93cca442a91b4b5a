// The training loop of one rank.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>

#include "observe/event_file.h"
#include "observe/meter.h"
#include "observe/progress.h"
#include "observe/rank_progress.h"
#include "observe/time_accumulator.h"
#include "optim/schedule.h"
#include "train/checkpoint.h"
#include "train/checkpoint_requests.h"
#include "train/checkpoint_saver.h"
#include "train/divergence.h"
#include "train/evaluation.h"
#include "train/evaluation_tracker.h"
#include "train/job_data.h"
#include "train/output_writer.h"
#include "train/rank_times.h"
#include "train/run_folder.h"
#include "train/step_runner.h"
#include "train/step_trace.h"
#include "train/tensorboard_log.h"
#include "train/training_intervals.h"

namespace fleet {

struct TrainerOptions {
  int rank = 0, world = 1;
  int nodes = 1;                         // number of nodes
  Communicator* communicator = nullptr;  // for device memory; null in a job of one rank
  Communicator* control = nullptr;       // for host memory; null if `communicator` uses host memory
  std::shared_ptr<Store> store;          // null in a job of one rank
  // A signal (not 0): stop after the next step, as agreed by all ranks.
  const std::atomic<int>* stop = nullptr;
  const std::atomic<int>* saves = nullptr;  // number of signals that asked for a checkpoint
  int terminal_width = 0;                   // standard output's; 0: plain lines
  std::string run;                          // identifies all starts of one job; "": it has only one
  bool restarted = false;                   // the launcher has started this run before
};

struct TrainResult {
  int64_t steps = 0;
  int stopped_by = 0;          // the stop signal; 0: none
  int64_t damaged = 0;         // images replaced, over all ranks
  int64_t skipped = 0;         // updates left out because of infinite or NaN values (train.on_nan)
  bool evaluated = false;      // whether the last step was evaluated
  MetricSums evaluation;       // the last one, over all ranks
  bool stopped_early = false;  // by train.early_stopping
};

// Trains, evaluates and saves as the job specifies. Prints progress and results to standard output,
// and appends to metrics.jsonl (rank 0). For use by the calling thread only.
class Trainer {
 public:
  // Opens the data, builds the session, loads a checkpoint, and agrees with the other ranks on the
  // start.
  Trainer(const Job& job, Device& device, const TrainerOptions& options);
  ~Trainer();
  // Throws NotFiniteError (train/finite_check.h) on all ranks if train.on_nan requires it, and at
  // the end if the last state could not be saved because it is not finite.
  TrainResult run();
  Session& session() const { return runner_->session(); }
  const std::string& folder() const { return output_; }  // the run's

 private:
  TrainResult train();
  void open_folder();
  void open_metrics();
  std::string checkpoints() const { return output_ + "/checkpoints"; }
  void log_unused_options();
  void load();
  std::vector<double> resume_on_all_ranks(bool continues_run);
  struct LoadedCheckpoint {
    std::string folder;
    TrainingPosition position = {};
    std::string note = {};
  };
  LoadedCheckpoint load_to_resume(const std::string& folder);
  void resume(const LoadedCheckpoint& loaded);
  void forget_missing_best();
  void set_aside_other_checkpoints();
  void set_newer_checkpoints_aside();
  void check_validation(const TrainingPosition& saved, const std::string& folder) const;
  TrainResult evaluate_only();
  TrainResult finish();
  void check_evaluates() const;
  void train_epoch(int64_t epoch);
  void train_step(const data::Batch& batch);
  void add_telemetry(EventLine* line);
  void write_event(const EventLine& line);
  void write_rank_times(bool all);
  void show_batch(const data::Batch& batch, int64_t step);  // the first one, in TensorBoard
  void show_gradients(int64_t step);
  void log_writer();
  void finish_writes();
  void report(const data::Batch& batch, int64_t step, double rate);
  bool should_compare(int64_t steps) const;  // whether ranks compare parameters after this step
  bool should_save(int64_t steps) const;     // whether to save a checkpoint after this step
  void after_step();
  std::optional<BadUpdates> check_for_nan();
  void act_on(const BadUpdates& bad);
  [[noreturn]] void end_for_nan(const std::string& what, int64_t step);
  std::string newest_checkpoint();
  void log_unsaved();
  bool agree_on_step(bool works);  // false: all ranks stop
  const data::Batch* next_batch(data::InputPipeline& from);
  int64_t steps_to_train();
  void publish_step(const data::Batch& batch);
  [[noreturn]] void end_for_failure();
  void save_if_asked();
  bool evaluates_only() const { return job_.train.boolean("evaluate_only"); }
  bool should_evaluate(int64_t steps) const;  // within an epoch
  void evaluate(int64_t epoch);
  void report_evaluation(const Evaluation& evaluation, int64_t epoch, double seconds);
  void evaluate_if_missed();
  EvaluatedMetrics evaluated_metrics() const;
  bool follow_evaluation();
  void follow_schedule();
  void report_best(EventLine* summary);
  void report_times(EventLine* summary);
  void save(bool at_end = false);
  void poll_save();
  // How long a rank waits for a disk: training may continue without this save, or must not.
  enum class Patience { kLimited, kUnlimited };
  bool finish_save(Patience patience);
  bool wait_for_save(double until);
  void skip_save();
  void drop_best_of_step(int64_t step);
  void save_at_end();
  void summarize();
  bool is_leader() const { return options_.rank == 0; }
  bool skips() const { return runner_->finite_check().skips(); }

  const Job job_;
  const TrainingIntervals intervals_{job_};
  Device& device_;
  const TrainerOptions options_;
  std::unique_ptr<RunFolder> run_folder_;  // on rank 0
  std::string output_;                     // its path, on all ranks
  bool continues_run_ =
      false;  // resumed from a checkpoint of this folder, or this run had begun in it
  std::unique_ptr<JobData> data_;
  std::unique_ptr<StepRunner> runner_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<EvaluationTracker> tracker_;
  BestValue saving_best_, best_on_disk_;         // the best value: being saved, and saved
  std::unique_ptr<DivergenceCheck> divergence_;  // null: no comparison
  std::shared_ptr<EventFile> events_;            // on rank 0, used by writer_ only
  std::unique_ptr<TensorboardLog> tensorboard_;  // on rank 0; null: not wanted
  bool shown_images_ = false;
  std::unique_ptr<OutputWriter> writer_;  // on rank 0
  std::unique_ptr<Progress> progress_;
  ProgressWriter published_ = ProgressWriter::from_env();  // for the launcher
  std::unique_ptr<StepTrace> trace_;
  StepTotals totals_;                      // what it publishes
  int64_t host_waits_ = 0;                 // this thread's, before the current step
  std::array<int64_t, 8> recent_waits_{};  // this thread's, in the last steps
  StepMeter meter_;
  RankTimes rank_times_;
  MovingAverage utilization_, clock_;  // the device's, if it reports them
  size_t max_memory_ = 0;
  DataPart part_;
  TrainingPosition position_;
  // In this folder. saved_step_: saved, or being saved; kept_step_: its predecessor.
  int64_t saved_step_ = -1, kept_step_ = -1, evaluated_step_ = -1;
  int64_t trained_samples_ = 0;  // by this rank since the start, without padding
  int64_t resumed_step_ = -1;    // the checkpoint's that training resumed from, in any folder
  std::unique_ptr<CheckpointSaver> saver_;
  bool saving_ = false;        // a save whose result the ranks have not agreed on yet
  bool save_failed_ = false;   // the last save failed on some rank
  bool save_hangs_ = false;    // on some rank the disk does not answer
  bool save_skipped_ = false;  // the last step to save was not, because an earlier save hangs
  std::string save_failure_;   // this rank's
  std::string unsaved_;        // reason why the last checkpoint was not saved
  bool warned_of_nan_ = false;
  std::exception_ptr failure_;              // from this rank's data
  bool ends_ = false;                       // on all ranks: some rank cannot continue
  CheckpointRequests checkpoint_requests_;  // by signals
  bool save_asked_ = false;                 // requested, not done yet
  std::optional<double> loss_scaling_;      // at the last fetch
  TrainResult result_;
  double begun_ = 0, started_ = 0;            // time of construction; time of the first step
  TimeAccumulator evaluating_, saving_time_;  // time during which training waited
};

}  // namespace fleet
