#include "train/rank_state.h"

#include <algorithm>
#include <functional>

#include "optim/ema.h"

namespace fleet {

static std::vector<VarId> saved_vars(const Program& program,
                                     const std::function<bool(const Var&)>& wanted) {
  std::vector<VarId> vars;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (is_saved(var) && wanted(var)) vars.push_back(id);
  }
  return vars;
}

std::vector<VarId> rank_states(const Program& program) {
  return saved_vars(program, [](const Var& var) { return var.per_rank; });
}

std::vector<VarId> shared_vars(const Program& program) {
  return saved_vars(program, [](const Var& var) { return !var.per_rank && var.owner < 0; });
}

bool is_sharded(const Program& program) {
  return !saved_vars(program, [](const Var& var) { return var.owner >= 0; }).empty();
}

bool saves_in_parts(const Program& program) {
  return !rank_states(program).empty() || is_sharded(program);
}

bool owns_variables(const Program& program, const JobRank& own) {
  return !saved_vars(program, [&](const Var& var) { return var.owner == own.rank; }).empty();
}

bool shards_parameters(const Program& program) {
  const auto parameters = program.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](VarId id) { return program.var(id).owner >= 0; });
}

bool saves(const JobRank& own, const Var& var) {
  return var.per_rank || own.rank == std::max(var.owner, 0);
}

std::vector<VarId> shared_statistics(const Program& program, SectionId forward) {
  std::vector<VarId> vars;
  const auto is_statistic = [&](VarId id) {
    return std::find(vars.begin(), vars.end(), id) != vars.end();
  };
  for (const Op& op : program.ops()) {
    const bool follows = program.sections()[op.section].name == kEmaSection &&
                         std::any_of(op.inputs.begin(), op.inputs.end(), is_statistic);
    if (op.section != forward && !follows) continue;
    for (VarId id : op.outputs) {
      if (id == kNoVar || program.var(id).kind != VarKind::kState) continue;
      if (!program.var(id).per_rank && program.var(id).owner < 0) vars.push_back(id);
    }
  }
  return vars;
}

bool ranks_diverge(const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(), [&](const Op& op) {
    return program.sections()[op.section].when.holds({.sync = true});
  });
}

bool weights_drift(const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(), [&](const Op& op) {
    if (!program.sections()[op.section].when.holds({.sync = true})) return false;
    return std::any_of(op.outputs.begin(), op.outputs.end(), [&](VarId id) {
      return id != kNoVar && program.var(id).kind == VarKind::kParameter;
    });
  });
}

RankSync::RankSync(Executor& executor, int64_t steps)
    : executor_(executor), wanted_(ranks_diverge(executor.program())), synced_steps_(steps) {}

void RankSync::run(int64_t steps) {
  if (!wanted_ || steps == synced_steps_) return;
  executor_.run({.step = steps, .sync = true});
  synced_steps_ = steps;
}

}  // namespace fleet
