// Cuts a training Program into the stages of a pipeline: leaves this rank its own stage, once for
// each micro-batch in the order of the schedule, with the messages to its neighbours.
#pragma once

#include <map>
#include <vector>

#include "passes/pipeline_schedule.h"
#include "passes/pipeline_stages.h"

namespace fleet {

// The variables of a model whose meaning depends on the samples of a batch.
struct BatchVars {
  std::vector<VarId> feeds;  // one row per sample
  std::vector<VarId> sums;   // read by the host: sums over samples, such as metrics
  std::vector<VarId> rows;   // read by the host: one row per sample
};

// Messages in one direction between two stages: a group of two ranks with its own stream, so that
// no message waits for one of another direction.
struct PipelineLink {
  GroupId group = -1;  // -1: there is no such stage
  int peer = 0;        // in the group
  int stream = 0;
};

struct PipelineOptions {
  int stages = 1, stage = 0;  // stage: of this rank
  int micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::kOneForwardOneBackward;
  SectionId forward = -1, backward = -1;
  VarId loss = kNoVar;  // float32 [1], the mean over the samples of a micro-batch
  BatchVars batch = {};
  // Activations go down the stages, gradients up.
  PipelineLink from_previous = {}, to_next = {}, from_next = {}, to_previous = {};
};

// Rewrites the Program, whose model was built for the size of a micro-batch and whose backward pass
// is complete:
// - Feeds get the rows of all micro-batches.
// - Gradients of parameters are sums over the micro-batches, in float32.
// - BatchVars::sums are sums over the micro-batches, and the loss is their mean; both are 0 on
//   stages that do not compute them. BatchVars::rows have the rows of all micro-batches, and are
//   `remote` on stages that do not compute them.
// - Operations of other stages appear once, in `remote` sections, because later passes append
//   operations that refer to them.
// kUsage if the stages cannot be cut like this.
StageMap split_pipeline(Program& program, const PipelineOptions& options);

}  // namespace fleet
