// The result of a run, from as few lines of its metrics.jsonl as possible.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "viewing/runs/run_history.h"

namespace fleet {

struct RunSummary {
  std::string folder;
  RunSettings settings;
  std::string seed;  // train.seed, as JSON; "": unknown
  // NaN: none. Of the last evaluation, else of the last training step.
  double loss = 0, acc1 = 0;
  double best_acc1 = 0;       // over all evaluations
  double steps = 0;           // the last step that was recorded, plus one
  double speed = 0;           // samples per second and rank
  double seconds = 0;         // from the first event to the last
  double target_seconds = 0;  // from the first event to the first evaluation that reaches it
  double target_steps = 0;
  bool complete = false;  // it ended by itself
};

// Collects the events of a metrics.jsonl. Lines of kind "train", nearly all, are skipped without
// being parsed, except the last.
class SummaryReader {
 public:
  // target: accuracy to reach; nullopt: none.
  SummaryReader(std::optional<double> target, RunSummary* into);
  // A part of the file: whole lines.
  void add(std::string_view lines);
  void finish();

 private:
  void take(std::string_view line);
  void take_start(const JsonObject& event);
  void take_test(const JsonObject& event);
  void note_time(const JsonObject& event);

  const std::optional<double> target_;
  RunSummary& all_;
  std::string last_train_;
  double begin_, end_;
  double tested_loss_, tested_acc1_;
};

// Reads the run's metrics.jsonl and config.txt. kUsage if it is not a run folder, kIo.
RunSummary read_run_summary(const std::string& folder, std::optional<double> target);

}  // namespace fleet
