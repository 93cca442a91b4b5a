// The traffic between the stages of a pipeline: the values, parameters and parts of gradients that
// a stage sends and receives with each action. Internal to passes.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/pipeline.h"

namespace fleet {

// A temporary that operations about samples write.
struct StageValue {
  int stage = -1;
  PipelineAction::Kind kind = PipelineAction::kForward;
  int op = 0;        // its first writer
  int furthest = 0;  // the stage furthest from its own that reads it
  // Computed from parameters alone, so that one message serves all micro-batches.
  bool once = false;
};

// Found in the Program before it is rewritten; "this stage" below is PipelineOptions::stage.
// Thread-safe once constructed. Program and options must outlive it; the Program's operations need
// not.
class PipelineTraffic {
 public:
  using Kind = PipelineAction::Kind;

  // kUsage if a stage would need a value of a stage that comes after it (of gradients: before it).
  PipelineTraffic(const Program& program, const PipelineOptions& options);

  const StageMap& stages() const { return stages_; }
  const std::map<VarId, StageValue>& values() const { return values_; }
  bool is_own(size_t op) const { return stages_.of_op[op] == options_.stage; }
  bool is_training(SectionId section) const { return program_.sections()[section].when.training; }
  // The actions that an operation about samples belongs to.
  Kind kind_of(const Op& op) const;
  // The section of an action's messages.
  SectionId section_of(Kind kind) const;
  // Whether it is a later stage's part of a parameter's gradient: only the sum reads it, in the
  // parameter's stage, and it is sent once a step.
  bool is_part(VarId id) const { return parts_.contains(id); }

  // Whether a value goes to a neighbour with this micro-batch, if it goes at all.
  bool is_sent(VarId id, const StageValue& value, int micro_batch) const;
  // Whether stages beyond this one read it.
  bool goes_on(const StageValue& value) const;
  // The values that this stage gets from a neighbour in this action, in the order of their
  // writers.
  std::vector<VarId> received(const PipelineAction& action) const;
  // {owner, parameter} of those that this stage receives or sends with this action, in the order
  // of their messages: they go before the values of the action.
  std::vector<std::pair<int, VarId>> parameters(const PipelineAction& action) const;
  // Whether stages behind this one read a parameter of parameters(action).
  bool goes_on(const PipelineAction& action, int owner, VarId parameter) const;

 private:
  void find_values();
  void find_readers();
  void find_imports();
  void find_parts();
  bool is_of_parameters(const Op& op) const;
  bool is_model_parameter(VarId id) const;
  int owner_of(VarId parameter) const;
  bool is_last(int micro_batch) const { return micro_batch + 1 == options_.micro_batches; }

  const Program& program_;
  const PipelineOptions& options_;
  StageMap stages_;
  SectionId evaluate_ = -1;
  std::map<VarId, StageValue> values_;
  // {in training, owner, parameter} -> the furthest stage that reads it
  std::map<std::tuple<bool, int, VarId>, int> imports_;
  std::set<VarId> parts_;
};

}  // namespace fleet
