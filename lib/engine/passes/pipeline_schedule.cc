#include <algorithm>

#include "passes/pipeline.h"

namespace fleet {

namespace {

// Forward passes of a stage before its first pair of forward and backward.
int forward_passes_ahead(PipelineSchedule schedule, int stages_after, int micro_batches) {
  switch (schedule) {
    case PipelineSchedule::kOneForwardOneBackward:
      return std::min(stages_after, micro_batches);
    case PipelineSchedule::kEagerOneForwardOneBackward:
      return std::min(2 * stages_after, micro_batches);
    case PipelineSchedule::kForwardThenBackward:
      break;
  }
  return micro_batches;
}

}  // namespace

std::vector<PipelineAction> training_actions(PipelineSchedule schedule, int stages, int stage,
                                             int micro_batches) {
  const int ahead = forward_passes_ahead(schedule, stages - stage - 1, micro_batches);
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
