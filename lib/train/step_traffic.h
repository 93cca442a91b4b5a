// What a rank's training steps exchange with other ranks, for metrics.jsonl.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "observe/event_file.h"
#include "train/control.h"

namespace fleet {

class StepTraffic {
 public:
  // communicators: those of the training Program, which outlive this; null ones are passed over.
  // Nothing is written in a job of one rank, or where one of them cannot tell its traffic.
  explicit StepTraffic(std::vector<Communicator*> communicators);

  // Around the work of each training step, which has ended in step_done() (as that of CPUs has).
  void step_begins();
  void step_done();
  // To a line of kind "train": of the mean step since the call before, and of all steps.
  void add_to(EventLine* line);
  // To the line "summary": of the mean step of each rank, by rank. Collective over control's ranks;
  // line: null where this rank writes none.
  void summarize(Control& control, EventLine* line) const;

 private:
  struct Sum {
    Traffic traffic;
    int64_t steps = 0;
    void add(const Traffic& more);
    double mean(int64_t Traffic::*bytes) const;
  };
  Traffic now() const;

  bool counted() const { return all_tell_ && !communicators_.empty(); }

  std::vector<Communicator*> communicators_;
  bool all_tell_;
  Traffic before_;        // the step at hand
  Sum recent_, overall_;  // since the last line; since the start
};

}  // namespace fleet
