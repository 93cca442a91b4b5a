// Runs the schedules of one or more ranks on paper.
//
// Each stream runs its operations in order, after those that they wait for. A collective begins
// once all simulated ranks of its group have reached it; messages of a rank share its links, apart
// from those between two stages of a pipeline, which have streams of their own. While a collective
// needs a core, the computation of its rank loses that core.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Seconds of one operation of a Plan.
struct TimedOp {
  double seconds = 0;    // that it takes while nothing else disturbs it
  double delay = 0;      // of a collective: the part in which another message can move
  double busy = 0;       // of a collective: the part in which it needs a core of its rank
  double hand_over = 0;  // more, if it waits for another computing stream
};

struct RankSchedule {
  int rank = 0;
  const Plan* plan = nullptr;
  const std::vector<TimedOp>* ops = nullptr;  // by index in Plan::ops
  std::vector<ScheduledOp> schedule;
  int threads = 1;  // cores of the rank
};

struct RankTimeline {
  double compute = 0;  // seconds in which any operation computes, less what messages take of them
  double idle = 0;     // in which it neither computes nor communicates, until the last rank ends
  double end = 0;
};

// By rank, in the given order. kInternal if the ranks would wait for each other for ever.
std::vector<RankTimeline> run_on_paper(std::vector<RankSchedule> ranks);

}  // namespace fleet
