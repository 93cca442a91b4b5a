// Parameters that are not trained, or only from some epoch or step on: optimizer.frozen,
// train.unfreeze_at, train.frozen_batch_norm.
//
// Training has phases: phase 0 trains all but optimizer.frozen, and each boundary of
// train.unfreeze_at begins another one. A Session has a Plan for each of them, so that a step costs
// what its phase needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program.h"
#include "optim/update_phases.h"
#include "passes/pass.h"
#include "train/job.h"

namespace fleet {

// Makes a text of train.unfreeze_at if it is a number.
void expand_unfreeze_at(ConfigTree* tree);

// The next step.
struct PhasePosition {
  int64_t step = 0, epoch = 0, batch = 0;  // completed
  int64_t batches = 1;                     // in an epoch
  int64_t merged_steps = 1;                // a phase begins with the first step of an update
};

class FreezingPhases {
 public:
  // kUsage naming train.unfreeze_at if its text is invalid, or if nothing is frozen.
  explicit FreezingPhases(const Job& job);

  // kUsage if the optimizer or an active strategy needs the same parameters in all steps.
  void check(const PassContext& context, const std::vector<std::string>& acting) const;
  // kUsage if the strategy has put parameters on some ranks only. Call after the updates.
  void check_placement(const Program& program) const;
  int count() const { return static_cast<int>(boundaries_.size()) + 1; }
  int last() const { return count() - 1; }
  int phase_at(const PhasePosition& at) const;
  // Marks the parameters of the Program for this phase (Var::trainable), and freezes batch norms
  // whose parameters are frozen. Call before the backward pass. kUsage if a pattern matches
  // nothing, or if nothing would be left to train. Returns the phases from which they are trained.
  TrainedFrom apply(Program& program, int phase) const;
  // Whether a state belongs to parameters that are frozen at first: the checkpoint of a run that
  // never trained them lacks it.
  bool begins_later(const std::string& state) const;
  // Lines for the log, from a Program before apply().
  std::vector<std::string> lines_at_start(const Program& program) const;
  // The first boundary that training of so many epochs and steps does not come to: "epoch 5"; "" if
  // it comes to all of them.
  std::string not_reached(int64_t epochs, int64_t steps) const;
  // phase: from 1 on. program: the last phase's.
  std::string line_at(int phase, const Program& program) const;

 private:
  struct Boundary {
    int64_t at = 0;
    std::vector<std::string> patterns = {};  // "*": all
  };
  int trained_from(const std::string& parameter) const;
  std::string when(int phase) const;  // "epoch 2"
  bool is_frozen(const std::string& parameter) const;
  void check_patterns(const Program& program) const;
  int frozen_norms(const Program& program) const;

  const Settings optimizer_;
  const bool fixes_statistics_;
  bool by_step_ = false;
  std::vector<Boundary> boundaries_;  // ascending
};

}  // namespace fleet
