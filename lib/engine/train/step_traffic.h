// Measures the data that a rank exchanges with others during training steps, for metrics.jsonl.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "observe/event_file.h"
#include "train/rank_coordinator.h"

namespace fleet {

class StepTraffic {
 public:
  // communicators: those of the training Program, which outlive this; null ones are ignored. Writes
  // nothing in a job of one rank, or if one of them cannot report its traffic.
  explicit StepTraffic(std::vector<Communicator*> communicators);

  // Call before and after the work of each training step. The work must have ended before
  // step_done() (on CPUs it always has).
  void step_begins();
  void step_done();
  // Adds to a line of kind "train": the mean step since the previous call, and over all steps.
  void add_to(EventLine* line);
  // Adds to the line "summary": the mean step of each rank, by rank. Collective over control's
  // ranks; line: null if this rank writes none.
  void summarize(RankCoordinator& control, EventLine* line) const;

 private:
  struct Sum {
    Traffic traffic;
    int64_t steps = 0;
    void add(const Traffic& more);
    double mean(int64_t Traffic::*bytes) const;
  };
  Traffic now() const;

  bool counted() const { return all_report_ && !communicators_.empty(); }

  std::vector<Communicator*> communicators_;
  bool all_report_;
  Traffic before_;        // at the start of the current step
  Sum recent_, overall_;  // since the last line; since the start
};

}  // namespace fleet
