// The order in which a stage of a pipeline computes its micro-batches.
#pragma once

#include <vector>

namespace fleet {

enum class PipelineSchedule {
  kForwardThenBackward,         // "F-then-B": keeps the activations of all micro-batches
  kOneForwardOneBackward,       // "1F1B": of at most as many as stages follow, and its own
  kEagerOneForwardOneBackward,  // "Eager1F1B": of twice as many as stages follow, and its own
};

struct PipelineAction {
  enum Kind { kForward, kBackward, kEvaluate } kind = kForward;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};

// A training step of stage `stage`. 1F1B: Narayanan et al. 2019, "PipeDream", without its weight
// versions; as in Paddle's SectionWorker. Eager1F1B: Zhuang et al. 2023, "On Optimizing the
// Communication of Model Parallelism"; a stage has the next message before it needs it.
std::vector<PipelineAction> training_actions(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches);
std::vector<PipelineAction> evaluation_actions(int micro_batches);

}  // namespace fleet
