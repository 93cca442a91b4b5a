#include "passes/pipeline_schedule.h"

#include <algorithm>

namespace fleet {

std::vector<PipelineAction> training_actions(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches) {
  const int ahead = schedule == PipelineSchedule::kOneForwardOneBackward
                        ? std::min(stages - stage - 1, micro_batches)
                        : micro_batches;
  std::vector<PipelineAction> actions;
  for (int i = 0; i < ahead; ++i) actions.push_back({PipelineAction::kForward, i});
  for (int i = 0; i < micro_batches; ++i) {
    if (ahead + i < micro_batches) actions.push_back({PipelineAction::kForward, ahead + i});
    actions.push_back({PipelineAction::kBackward, i});
  }
  return actions;
}

std::vector<PipelineAction> evaluation_actions(int micro_batches) {
  std::vector<PipelineAction> actions;
  for (int i = 0; i < micro_batches; ++i) actions.push_back({PipelineAction::kEvaluate, i});
  return actions;
}

}  // namespace fleet
