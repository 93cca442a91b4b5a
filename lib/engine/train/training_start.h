// How a training starts: from initial weights, or from a checkpoint. An evaluation without training
// starts otherwise: train/evaluated_weights.h.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint_policy.h"
#include "train/evaluation_tracker.h"
#include "train/step_runner.h"

namespace fleet {

// All ranks make the same calls.
class TrainingStart {
 public:
  struct Parts {
    StepRunner& runner;
    CheckpointPolicy& policy;
    EvaluationTracker& tracker;
  };
  // folder: the run's. batches: those in an epoch. Everything must outlive it.
  TrainingStart(const Job& job, const std::string& folder, int64_t batches, const Parts& parts,
                JobRank own);

  // Loads what the job says: checkpoint.weights, checkpoint.resume. marked: this rank sees that an
  // earlier start of this run has marked the folder as its own. Such a run continues from the
  // checkpoints there, whatever checkpoint.resume says. One rank that sees the mark suffices: if
  // the others do not see its checkpoints, the job must not begin again.
  void load(bool marked);
  // Whether the run continues in its folder: it was resumed from a checkpoint there, or had begun.
  bool continues() const { return continues_; }
  // Whether it was resumed from a checkpoint, in any folder.
  bool resumed() const { return resumed_step_ >= 0; }

 private:
  struct LoadedCheckpoint {
    std::string folder;
    TrainingPosition position = {};
    std::string note = {};
    std::vector<MergedRows> merged_rows = {};
  };
  std::vector<double> resume_on_all_ranks();
  LoadedCheckpoint load_checkpoint(const std::string& folder);
  void resume(const LoadedCheckpoint& loaded);
  std::string load_weights(const std::string& path);
  void set_best(const BestValue& best);
  void forget_missing_best();
  void set_aside_other_checkpoints();
  void set_newer_checkpoints_aside();
  bool is_leader() const { return own_.rank == 0; }

  const Job& job_;
  const std::string root_;  // the folder of the run's checkpoints
  const std::string folder_;
  const int64_t batches_;
  const Parts parts_;
  const JobRank own_;
  bool continues_ = false;
  int64_t resumed_step_ = -1;  // the checkpoint's, in any folder
};

}  // namespace fleet
