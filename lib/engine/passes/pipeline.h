// Cuts a training Program into the stages of a pipeline: leaves this rank its own stage, once for
// each micro-batch in the order of the schedule, with the messages to its neighbours.
#pragma once

#include <map>
#include <vector>

#include "graph/program.h"

namespace fleet {

// An annotation of operations (Program::make_op()): the stage. The backward pass gives an operation
// the stage of the forward operation that it differentiates, and copies keep it.
inline constexpr char kStageAnnotation[] = "@stage";

// Copies the stage of one operation, if it has any, to another.
void copy_stage(const Op& from, Op& to);

// Whether the forward section can be cut so: stage i ends with the operation that writes ends[i],
// the last stage with the last operation. False if some stage would be empty, because the ends are
// not in the order of the operations.
bool are_stage_ends(const Program& program, SectionId forward, const std::vector<VarId>& ends);
// Marks the operations of the forward section with their stages. Only if are_stage_ends().
void mark_stages(Program& program, SectionId forward, const std::vector<VarId>& ends);

// Ends that divide the time of the forward section evenly, estimated from multiplications and from
// bytes read and written; the bytes that the stages exchange count too. Fewer than stages - 1 if
// the model has too few operations.
std::vector<VarId> balanced_ends(const Program& program, SectionId forward, int stages);

struct StageMap {
  std::vector<int> of_op;       // by operation; -1: in no stage, since it is not about samples
  std::map<VarId, int> of_var;  // parameters and states of the model, and copies of parameters
};
// The stages of all operations, after mark_stages() and the backward pass. Operations without a
// mark have the stage of their inputs. A parameter belongs to the first stage that reads it. kUsage
// naming a state that two stages use.
StageMap find_stages(const Program& program, SectionId backward, int stages);

// The order in which a stage of a pipeline computes its micro-batches.
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
  int stages = 1, stage = 0;  // stage: this rank's
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
// - A parameter that later stages read too (a tied embedding), or a cast of it, is sent to them
//   once a step; their part of its gradient comes back once a step if it is float32.
// - BatchVars::sums are sums over the micro-batches, and the loss is their mean; both are 0 on
//   stages that do not compute them. BatchVars::rows have the rows of all micro-batches, and are
//   `remote` on stages that do not compute them.
// - Operations of other stages appear once, in `remote` sections, because later passes append
//   operations that refer to them.
// kUsage if the stages cannot be cut like this.
StageMap split_pipeline(Program& program, const PipelineOptions& options);

}  // namespace fleet
