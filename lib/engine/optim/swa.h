// Stochastic weight averaging (SWA; Izmailov et al. 2018, https://arxiv.org/abs/1803.05407): the
// mean of the weights at chosen steps, which evaluation reads instead of the weights.
//
// As torch.optim.swa_utils: update n, counted from 1, of each parameter x is
//   average = average + (x - average) / n                  (AveragedModel)
// and the running statistics are copied. Running statistics that fit the averaged weights come from
// a pass over training data, as in update_bn(): the mean over batches of each batch's statistics.
// Until the first update the averages equal the weights.
#pragma once

#include "graph/program.h"

namespace fleet {

// The flag of steps after which the averages are updated; the section of runs for statistics, which
// exists if the model has running statistics; their number of batches so far, int64 [1], which the
// host sets to 0 before the first one. Batch n of such a run is the step statistics_step(n), before
// step 0: no other section runs then.
inline constexpr char kAverageFlag[] = "average the weights";
inline constexpr char kStatisticsSection[] = "average_statistics";
inline constexpr char kStatisticsBatches[] = "unsaved.statistics_batches";

constexpr int64_t statistics_step(int64_t n) { return -1 - n; }

// Call after append_updates(). The states have the names of optim/ema.h: "ema.<name>" and
// kEmaUpdates.
void append_swa(Program& program, SectionId forward, SectionId evaluate);

// The averages of statistics that these runs write.
std::vector<VarId> averaged_statistics(const Program& program);

}  // namespace fleet
