// The order in which a stage of a pipeline computes its micro-batches.
#pragma once

#include <vector>

namespace fleet {

enum class PipelineSchedule {
  kForwardThenBackward,    // "F-then-B": keeps the activations of all micro-batches
  kOneForwardOneBackward,  // "1F1B": of at most as many as stages follow, and its own
};

struct PipelineAction {
  enum Kind { kForward, kBackward, kEvaluate } kind = kForward;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// A training step of stage `stage` (Narayanan et al. 2019, "PipeDream", without its weight
// versions; as in Paddle's SectionWorker).
std::vector<PipelineAction> training_actions(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches);
std::vector<PipelineAction> evaluation_actions(int micro_batches);

}  // namespace fleet
