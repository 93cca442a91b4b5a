// Reports a training to its user: lines and a bar on standard output, metrics.jsonl, the log; and
// its launcher: the progress of this rank.
#pragma once

#include <optional>
#include <string>

#include "observe/meter.h"
#include "observe/progress.h"
#include "observe/rank_progress.h"
#include "train/evaluation.h"
#include "train/evaluation_tracker.h"
#include "train/rank_times.h"
#include "train/run_output.h"
#include "train/step_runner.h"
#include "train/token_speed.h"

namespace fleet {

struct TrainResult {
  int64_t steps = 0;
  int stopped_by = 0;          // the stop signal; 0: none
  int64_t damaged = 0;         // images replaced, over all ranks
  int64_t skipped = 0;         // updates left out because of infinite or NaN values (train.on_nan)
  bool evaluated = false;      // whether the last step was evaluated
  MetricSums evaluation;       // the last one, over all ranks
  bool stopped_early = false;  // by train.early_stopping
};

struct TrainingTimes {
  StepMeter meter;                     // the training steps'
  TimeAccumulator evaluating, saving;  // while training waited
};

// For the training thread. All ranks make the same calls; rank 0 writes lines that are the same for
// all.
class TrainingReport {
 public:
  struct Options {
    JobRank rank;
    int terminal_width = 0;  // standard output's; 0: plain lines
    double begun = 0;        // time at which the start began
  };
  // They must outlive it. train: the training data.
  TrainingReport(const Job& job, Device& device, StepRunner& runner, data::InputPipeline& train,
                 const Options& options);

  // Opens the run's files; on rank 0. new_run: files of an earlier run are set aside.
  void open(const std::string& folder, bool new_run);
  // Instead, for an evaluation without training, which changes nothing that describes a run.
  // folder: where the results go, "" for none; weights: those evaluated. kUsage if train.output
  // cannot be written.
  void open_results(const std::string& folder, const std::string& weights);
  void training_begins();
  void epoch_begins();
  // Call before a line that is not the report's: removes the bar.
  void clear_bar() { progress_.finish(); }
  // The results of a fetched step, which end in the bar's place. target: at which training ends.
  void step(const data::Batch& batch, double rate, int64_t target);
  void draw_bar(const data::Batch& batch);
  // Call it after each training step.
  void step_done(const data::Batch& batch);
  // source: the evaluated data; null: unknown.
  void evaluated(const Evaluation& evaluation, int64_t epoch, double seconds,
                 const data::Source* source);
  void not_finite(const BadUpdates& bad);
  // Collective. checkpoints: their folder.
  void summarize(const TrainResult& result, const EvaluationTracker& tracker,
                 const std::string& checkpoints);
  // Warns of files that could not be written. A failed line does not end training: the disk may be
  // full only for a while.
  void log_failures();

  TrainingTimes& times() { return times_; }
  ProgressWriter& launcher() { return launcher_; }
  RunOutput& files() { return files_; }

 private:
  void add_telemetry(EventLine* line);
  void write_classes(const EvaluationCollector& collected, int64_t epoch,
                     const data::Source* source);
  void write_rank_times(bool all);
  void report_best(const BestValue& best, const std::string& checkpoints, EventLine* summary);
  void report_times(const TrainResult& result, EventLine* summary);
  void finish_writes();

  const Job& job_;
  Device& device_;
  StepRunner& runner_;
  data::InputPipeline& train_;
  const Options options_;
  TrainingTimes times_;
  ProgressWriter launcher_ = ProgressWriter::from_env();
  RunOutput files_;
  Progress progress_;
  RankTimes rank_times_;
  std::optional<TokenSpeedMeter> tokens_;  // if the task counts tokens
  MovingAverage utilization_, clock_;      // the device's, if it reports them
  size_t max_memory_ = 0;
  bool warned_of_nan_ = false, named_small_classes_ = false;
  std::optional<double> loss_scaling_;  // at the last fetch
  double started_ = 0;                  // time of the first step
  std::string folder_;                  // the run's
  std::string evaluated_weights_;       // "": the job trains
};

}  // namespace fleet
