#include "passes/pipeline_traffic.h"

#include <algorithm>
#include <string>

#include "passes/uses.h"

namespace fleet {

PipelineTraffic::PipelineTraffic(const Program& program, const PipelineOptions& options)
    : program_(program),
      options_(options),
      stages_(find_stages(program, options.backward, options.stages)) {
  find_values();
  find_readers();
  find_imports();
  find_parts();
}

PipelineAction::Kind PipelineTraffic::kind_of(const Op& op) const {
  if (op.section == options_.backward) return Kind::kBackward;
  return is_training(op.section) ? Kind::kForward : Kind::kEvaluate;
}

SectionId PipelineTraffic::section_of(Kind kind) const {
  return kind == Kind::kForward    ? options_.forward
         : kind == Kind::kBackward ? options_.backward
                                   : evaluate_;
}

void PipelineTraffic::find_values() {
  const std::vector<Op>& ops = program_.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (stages_.of_op[i] < 0) continue;
    if (kind_of(ops[i]) == Kind::kEvaluate) evaluate_ = ops[i].section;
    for (const VarId id : ops[i].outputs) {
      if (id == kNoVar || program_.var(id).kind != VarKind::kTemporary) continue;
      values_.try_emplace(id, StageValue{.stage = stages_.of_op[i],
                                         .kind = kind_of(ops[i]),
                                         .op = static_cast<int>(i),
                                         .furthest = stages_.of_op[i],
                                         .once = is_of_parameters(ops[i])});
    }
  }
}

bool PipelineTraffic::is_of_parameters(const Op& op) const {
  const std::vector<VarId> reads = op.reads();
  return kind_of(op) != Kind::kBackward && !reads.empty() &&
         std::all_of(reads.begin(), reads.end(), [this](VarId id) {
           const auto value = values_.find(id);
           return value == values_.end() ? is_model_parameter(id) : value->second.once;
         });
}

bool PipelineTraffic::is_model_parameter(VarId id) const {
  const Var& var = program_.var(id);
  return var.kind == VarKind::kParameter || var.copy_of != kNoVar;
}

int PipelineTraffic::owner_of(VarId parameter) const {
  const VarId whole = program_.var(parameter).copy_of;
  return stages_.of_var.at(whole == kNoVar ? parameter : whole);
}

// Values of the forward part go to later stages, gradients to earlier ones.
void PipelineTraffic::find_readers() {
  const std::vector<Op>& ops = program_.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const int stage = stages_.of_op[i];
    if (stage < 0) continue;
    for (const VarId id : ops[i].inputs) {
      const auto found = values_.find(id);
      if (found == values_.end() || found->second.stage == stage) continue;
      StageValue& value = found->second;
      const bool up = value.kind == Kind::kBackward;
      if (up != (stage < value.stage)) {
        throw Error(ErrorCode::kUsage,
                    "stage " + std::to_string(stage) + " would need '" + program_.var(id).name +
                        "' of stage " + std::to_string(value.stage),
                    "strategy pipeline_configs.cut", "cut the model elsewhere");
      }
      value.furthest = up ? std::min(value.furthest, stage) : std::max(value.furthest, stage);
    }
  }
}

// Parameters, and copies of them, that stages behind their owner read.
void PipelineTraffic::find_imports() {
  const std::vector<Op>& ops = program_.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    const int stage = stages_.of_op[i];
    if (stage < 0) continue;
    for (const VarId id : ops[i].reads()) {
      if (!is_model_parameter(id) || owner_of(id) == stage) continue;
      const std::tuple key(is_training(ops[i].section), owner_of(id), id);
      int& furthest = imports_.try_emplace(key, stage).first->second;
      furthest = std::max(furthest, stage);
    }
  }
}

void PipelineTraffic::find_parts() {
  const Uses uses(program_);
  for (const VarId parameter : program_.parameters()) {
    const VarId gradient = program_.gradient(parameter);
    const auto owner = stages_.of_var.find(parameter);
    const int writer = gradient == kNoVar ? -1 : uses.writer(gradient);
    if (writer < 0 || owner == stages_.of_var.end()) continue;
    FLEET_CHECK(stages_.of_op[writer] == owner->second,
                "the gradient of '" + program_.var(parameter).name + "' is in another stage");
    const Op& sum = program_.ops()[writer];
    if (sum.type() != "sum") continue;
    for (const VarId id : sum.inputs) {
      const auto value = values_.find(id);
      if (value == values_.end() || value->second.stage == owner->second) continue;
      if (uses.readers(id).size() > 1 || program_.var(id).dtype != DType::kFloat32) continue;
      parts_.insert(id);
    }
  }
}

bool PipelineTraffic::is_sent(VarId id, const StageValue& value, int micro_batch) const {
  return (!value.once || micro_batch == 0) && (!is_part(id) || is_last(micro_batch));
}

bool PipelineTraffic::goes_on(const StageValue& value) const {
  return value.kind == Kind::kBackward ? value.furthest < options_.stage
                                       : value.furthest > options_.stage;
}

std::vector<VarId> PipelineTraffic::received(const PipelineAction& action) const {
  const int own = options_.stage, micro_batch = action.micro_batch;
  const Kind kind = action.kind;
  std::vector<std::pair<int, VarId>> found;
  for (const auto& [id, value] : values_) {
    const bool passes = kind == Kind::kBackward ? value.stage > own && value.furthest <= own
                                                : value.stage < own && value.furthest >= own;
    if (value.kind == kind && passes && is_sent(id, value, micro_batch)) {
      found.emplace_back(value.op, id);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<VarId> ids;
  for (const auto& [op, id] : found) ids.push_back(id);
  return ids;
}

std::vector<std::pair<int, VarId>> PipelineTraffic::parameters(const PipelineAction& action) const {
  std::vector<std::pair<int, VarId>> found;
  if (action.kind == Kind::kBackward || action.micro_batch > 0) return found;
  for (const auto& [key, furthest] : imports_) {
    const auto& [training, owner, id] = key;
    if (training == (action.kind == Kind::kEvaluate)) continue;
    if (owner <= options_.stage && furthest >= options_.stage) found.emplace_back(owner, id);
  }
  return found;
}

bool PipelineTraffic::goes_on(const PipelineAction& action, int owner, VarId parameter) const {
  return imports_.at({action.kind != Kind::kEvaluate, owner, parameter}) != options_.stage;
}

}  // namespace fleet
