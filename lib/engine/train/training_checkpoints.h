// Saves the checkpoints of a training in the background. Training continues if one cannot be
// written.
#pragma once

#include <memory>
#include <string>

#include "train/checkpoint_policy.h"
#include "train/checkpoint_saver.h"
#include "train/divergence.h"
#include "train/evaluation_tracker.h"
#include "train/training_report.h"

namespace fleet {

// All ranks make the same calls; for the training thread.
class TrainingCheckpoints {
 public:
  struct Parts {
    StepRunner& runner;
    CheckpointPolicy& policy;
    EvaluationTracker& tracker;
    TrainingReport& report;
    DivergenceCheck* divergence;  // null: ranks are not compared
  };
  // root: the folder of the checkpoints. communicator: of host memory; null in a job of one rank.
  // Everything must outlive it.
  TrainingCheckpoints(std::string root, const Parts& parts, JobRank own,
                      Communicator* communicator);

  // Saves the position of the runner, unless it is saved already or the save before hangs.
  // at_end: returns when it is on the disk. NotFiniteError if the state is not finite and
  // train.on_nan says stop.
  void save(bool at_end = false);
  // Logs the end of a save in the background, if one has ended.
  void poll();
  // How long a rank waits for a disk. kLimited: training may continue without this save.
  enum class Patience { kLimited, kUnlimited };
  // Waits for the previous save and for the ranks' agreement on its result. False: it still runs on
  // some rank. Once the disk does not answer, later calls do not wait for it again.
  bool finish(Patience patience);
  // Training has ended: throws if its last state could not be saved.
  void check_last();
  // Compares the ranks first: errors of DivergenceCheck::compare() instead if one differs. bad: the
  // update that ends the job, if it is known.
  [[noreturn]] void end_for_nan(const std::string& what, int64_t step,
                                const BadUpdates* bad = nullptr);

 private:
  std::string newest();
  void log_unsaved();
  void skip();
  bool wait_until(double until);
  void set_best(const BestValue& best);
  bool is_leader() const { return own_.rank == 0; }

  const std::string root_;
  const Parts parts_;
  const JobRank own_;
  std::unique_ptr<CheckpointSaver> saver_;
  std::string failure_;  // this rank's, in the last save
  std::string unsaved_;  // a value of the last state that is not finite; "": it was saved
};

}  // namespace fleet
