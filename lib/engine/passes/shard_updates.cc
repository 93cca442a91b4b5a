#include <utility>

#include "passes/gradients.h"
#include "passes/sharding.h"

namespace fleet {
namespace {

void give_to_owner(Var& var, int owner, const Shard& shard) {
  var.owner = shard.savers[owner];
  var.remote = owner != shard.place;
}

bool is_sum(const Op& op) { return op.type() == "reduce"; }

}  // namespace

void shard_updates(Program& program, SectionId optimize, SectionId remote, const Owners& owners,
                   const Shard& shard) {
  for (const auto& [parameter, states] : states_of_updates(program)) {
    const auto owner = owners.find(parameter);
    if (owner == owners.end()) continue;
    for (const VarId state : states) give_to_owner(program.var(state), owner->second, shard);
  }
  move_foreign_updates(program, optimize, remote, owners, shard.place);
}

void sum_over_copies(Program& program, int place, GroupId copies, const OwnerMessages& messages) {
  std::vector<Op> ops;
  for (Op& op : program.ops()) {
    const bool own = is_sum(op) && op.attributes.integer("communicator") == messages.group &&
                     op.attributes.integer("root") == place;
    const std::vector<VarId> vars = own ? op.inputs : std::vector<VarId>();
    const SectionId section = op.section;
    ops.push_back(std::move(op));
    if (!own) continue;
    ops.push_back(
        program.make_op(section, "all_reduce", vars, vars, {{"communicator", int64_t{copies}}}));
    ops.back().stream = messages.stream;
  }
  program.ops() = std::move(ops);
}

void limit_unsent_gradients(Program& program, const OwnerMessages& messages) {
  VarId last = kNoVar, awaited = kNoVar;  // gradients in the last two messages
  for (Op& op : program.ops()) {
    const bool waits = op.stream == 0 && op.section == program.find_section("backward");
    if (waits && awaited != kNoVar) op.after.push_back(std::exchange(awaited, kNoVar));
    if (!is_sum(op) || op.attributes.integer("communicator") != messages.group) continue;
    awaited = std::exchange(last, op.outputs[0]);
  }
}

std::map<VarId, VarId> accumulate_on_owners(Program& program, const Owners& owners,
                                            const Shard& shard) {
  const SectionId backward = program.find_section("backward");
  const SectionId remote =
      program.add_section("accumulate_remote", program.sections()[backward].when, true);
  std::map<VarId, VarId> parameters, accumulators;  // by gradient; by parameter
  for (const auto& [parameter, owner] : owners) parameters[program.gradient(parameter)] = parameter;
  std::vector<Op> ops, waiting;
  const auto flush = [&] {
    for (Op& op : waiting) ops.push_back(std::move(op));
    waiting.clear();
  };
  const auto accumulate = [&](VarId gradient) {
    const VarId parameter = parameters.at(gradient);
    const int owner = owners.at(parameter);
    const SectionId section = owner == shard.place ? backward : remote;
    const VarId sum = program.state(program.var(parameter).name + kMergedGradient,
                                    program.var(parameter).shape, Init());
    give_to_owner(program.var(sum), owner, shard);
    add_to_sum(program, section, gradient, sum, &waiting);
    accumulators[parameter] = sum;
  };
  // One message late, so that the computation does not wait for the message.
  for (Op& op : program.ops()) {
    const std::vector<VarId> summed = is_sum(op) ? op.inputs : std::vector<VarId>();
    if (op.section != backward && !is_sum(op) && !ops.empty() && ops.back().section == backward) {
      flush();
    }
    if (!summed.empty()) flush();
    ops.push_back(std::move(op));
    for (const VarId gradient : summed) accumulate(gradient);
  }
  flush();
  program.ops() = std::move(ops);
  for (const auto& [parameter, sum] : accumulators) program.set_gradient(parameter, sum);
  return accumulators;
}

void reset_accumulators(Program& program, const std::map<VarId, VarId>& accumulators,
                        SectionId optimize, SectionId remote) {
  for (const auto& [parameter, sum] : accumulators) {
    program.append(program.var(sum).remote ? remote : optimize, "fill", {}, {sum},
                   {{"shape", to_attribute(program.var(sum).shape)}});
  }
}

}  // namespace fleet
