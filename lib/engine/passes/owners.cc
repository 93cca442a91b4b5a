#include "passes/owners.h"

#include <algorithm>
#include <set>

#include "ops/collective.h"
#include "optim/update_op.h"

namespace fleet {
namespace {

std::vector<Op>::iterator find_op(Program& program, SectionId section, const std::string& type) {
  return std::find_if(program.ops().begin(), program.ops().end(),
                      [&](const Op& op) { return op.section == section && op.type() == type; });
}

// The gradients that have an owner other than `place`.
std::set<VarId> foreign_gradients(const Program& program, const Owners& owners, int place) {
  std::set<VarId> foreign;
  for (const auto& [parameter, owner] : owners) {
    if (owner != place) foreign.insert(program.gradient(parameter));
  }
  return foreign;
}

// Restricts the operation to own gradients, or to a zero without any, and combines its result
// over the ranks.
void restrict_to_owned(Program& program, std::vector<Op>::iterator op,
                       const std::set<VarId>& foreign, int first, const std::string& reduction,
                       const OwnerMessages& messages) {
  std::vector<Op> before;
  std::vector<VarId> inputs(op->inputs.begin(), op->inputs.begin() + first);
  for (size_t i = first; i < op->inputs.size(); ++i) {
    if (!foreign.contains(op->inputs[i])) inputs.push_back(op->inputs[i]);
  }
  if (static_cast<int>(inputs.size()) == first) {
    inputs.push_back(program.temporary("no_gradient"));
    before.push_back(program.make_op(op->section, "fill", {}, {inputs.back()},
                                     {{"shape", std::vector<int64_t>{1}}, {"value", 0.0}}));
  }
  op->inputs = inputs;
  const VarId result = op->outputs[0];
  Op sum = program.make_op(op->section, "all_reduce", {result}, {result},
                           {{"op", reduction}, {"communicator", int64_t{messages.group}}});
  sum.stream = messages.stream;
  const auto behind = program.ops().insert(op + 1, std::move(sum));
  program.ops().insert(behind - 1, before.begin(), before.end());
}

// Moves operations of the section whose results are read only by operations of `never` to that
// section.
void move_unread_ops(Program& program, SectionId section, SectionId never) {
  std::set<VarId> wanted;
  for (auto op = program.ops().rbegin(); op != program.ops().rend(); ++op) {
    const auto is_wanted = [&](VarId id) {
      return id != kNoVar && (wanted.contains(id) || program.var(id).kind != VarKind::kTemporary);
    };
    const bool moves = op->section == section && !is_collective(*op) && !op->outputs.empty() &&
                       std::none_of(op->outputs.begin(), op->outputs.end(), is_wanted);
    if (moves) op->section = never;
    if (op->section != never) wanted.insert(op->inputs.begin(), op->inputs.end());
  }
}

// The parameter whose update the operation is or belongs to; kNoVar: none.
VarId updated_by(const Program& program, const Op& op) {
  if (is_update(op)) return op.outputs[0];
  if (!op.attributes.has(kUpdatedParameter)) return kNoVar;
  return program.find(op.attributes.text(kUpdatedParameter));
}

}  // namespace

std::map<VarId, std::vector<VarId>> states_of_updates(const Program& program) {
  std::map<VarId, std::vector<VarId>> states;
  for (const Op& op : program.ops()) {
    if (op.attributes.has(kUpdatedParameter)) {
      for (const VarId id : op.writes()) {
        if (program.var(id).kind == VarKind::kState) states[updated_by(program, op)].push_back(id);
      }
    }
    if (!is_update(op)) continue;
    for (size_t i = 1; i < op.outputs.size(); ++i) {
      const VarId id = op.outputs[i];
      if (id == kNoVar || program.var(id).copy_of != kNoVar) continue;
      states[op.outputs[0]].push_back(id);
    }
  }
  return states;
}

namespace {

// The size of the largest part if `sizes` are cut into so many parts as evenly as possible.
int64_t smallest_part(const std::vector<int64_t>& sizes, int parts) {
  const auto fits = [&](int64_t most) {
    int needed = 1;
    int64_t part = 0;
    for (const int64_t size : sizes) {
      if (size > most) return false;
      if (part + size > most) {
        ++needed;
        part = 0;
      }
      part += size;
    }
    return needed <= parts;
  };
  int64_t low = 0, high = 1;
  for (const int64_t size : sizes) high += size;
  while (low + 1 < high) {  // high fits
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

// Parameters by owner, in order of creation.
std::map<int, std::vector<VarId>> by_owner(const Owners& owners) {
  std::map<int, std::vector<VarId>> parameters;
  for (const auto& [parameter, owner] : owners) parameters[owner].push_back(parameter);
  return parameters;
}

// One message for each type. Returns their number.
int broadcast(Program& program, SectionId section, const std::vector<VarId>& vars, int owner,
              const OwnerMessages& messages) {
  std::map<DType, std::vector<VarId>> by_type;
  for (const VarId id : vars) by_type[program.var(id).dtype].push_back(id);
  for (const auto& [type, same] : by_type) {
    program
        .append(section, "broadcast", same, same,
                {{"root", int64_t{owner}}, {"communicator", int64_t{messages.group}}})
        .stream = messages.stream;
  }
  return static_cast<int>(by_type.size());
}

}  // namespace

Owners assign_owners(const Program& program, int ranks) {
  const std::vector<Gradient> gradients = find_gradients(program);
  std::map<VarId, int> of_gradient;
  std::vector<int64_t> load(ranks);
  for (const Gradient& gradient : gradients) {
    const Var& var = program.var(gradient.parameter);
    const auto least = std::min_element(load.begin(), load.end());
    *least += var.shape.elements() * static_cast<int64_t>(size_of(var.dtype));
    of_gradient[gradient.var] = static_cast<int>(least - load.begin());
  }
  Owners owners;
  for (const VarId parameter : program.parameters()) {
    const auto found = of_gradient.find(program.gradient(parameter));
    const bool trained = found != of_gradient.end() && program.var(parameter).trainable;
    if (trained) owners[parameter] = found->second;
  }
  return owners;
}

Owners assign_contiguous_owners(const Program& program, int ranks,
                                const std::set<VarId>& trained_later) {
  std::vector<VarId> parameters;
  std::vector<int64_t> sizes;
  const Owners trained = assign_owners(program, ranks);
  std::set<VarId> gradients;
  for (const VarId parameter : program.parameters()) {
    const bool now = trained.contains(parameter);
    if (!now && !trained_later.contains(parameter)) continue;
    // A sum has one owner. If two parameters shared one, it would depend on which of them are
    // trained, and so differ between the Programs of a job.
    FLEET_CHECK(!now || gradients.insert(program.gradient(parameter)).second,
                "two parameters share a gradient");
    const Var& var = program.var(parameter);
    parameters.push_back(parameter);
    sizes.push_back(var.shape.elements() * static_cast<int64_t>(size_of(var.dtype)));
  }
  const int64_t most = smallest_part(sizes, ranks);
  Owners owners;
  int owner = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (bytes + sizes[i] > most) {
      ++owner;
      bytes = 0;
    }
    bytes += sizes[i];
    if (trained.contains(parameters[i])) owners[parameters[i]] = owner;
  }
  return owners;
}

int reduce_to_owners(Program& program, const Owners& owners, const OwnerMessages& messages) {
  const std::vector<Gradient> gradients = find_gradients(program);
  const std::vector<std::vector<int>> buckets =
      group_gradients(sizes_of(program, gradients),
                      messages.fuse ? messages.buckets : BucketLimits{.exact_count = 1});
  std::vector<Op> ops;
  size_t next = 0;
  int count = 0;
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const SectionId section = messages.section < 0 ? program.ops()[i].section : messages.section;
    ops.push_back(std::move(program.ops()[i]));
    for (; next < buckets.size(); ++next) {
      if (gradients[buckets[next].back()].computed_by != static_cast<int>(i)) break;
      std::map<int, std::vector<VarId>> vars;
      for (const int index : buckets[next]) {
        vars[owners.at(gradients[index].parameter)].push_back(gradients[index].var);
      }
      for (const auto& [owner, own] : vars) {
        ops.push_back(
            program.make_op(section, "reduce", own, own,
                            {{"root", int64_t{owner}}, {"communicator", int64_t{messages.group}}}));
        ops.back().stream = messages.stream;
        ++count;
      }
    }
  }
  FLEET_CHECK(next == buckets.size(), "a bucket of gradients was not inserted");
  program.ops() = std::move(ops);
  return count;
}

void check_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                     const OwnerMessages& messages) {
  // The index of the first gradient input: after the scale, or after the record and the loss.
  for (const auto& [type, first] :
       {std::pair("check_finite_and_unscale", 1), {"check_finite", 2}}) {
    const auto check = find_op(program, optimize, type);
    if (check == program.ops().end()) continue;
    restrict_to_owned(program, check, foreign_gradients(program, owners, place), first, "max",
                      messages);
  }
}

void combine_norm(Program& program, SectionId optimize, const Owners& owners, int place,
                  const OwnerMessages& messages) {
  const auto squares = find_op(program, optimize, "sum_of_squares");
  FLEET_CHECK(squares != program.ops().end(), "no operation computes the global gradient norm");
  restrict_to_owned(program, squares, foreign_gradients(program, owners, place), /*first=*/0, "sum",
                    messages);
}

void move_foreign_updates(Program& program, SectionId from, SectionId to, const Owners& owners,
                          int place) {
  for (Op& op : program.ops()) {
    const VarId parameter = op.section == from ? updated_by(program, op) : kNoVar;
    if (parameter != kNoVar && owners.at(parameter) != place) op.section = to;
  }
  move_unread_ops(program, from, to);
}

void update_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                      bool global_norm, const OwnerMessages& messages) {
  if (global_norm) combine_norm(program, optimize, owners, place, messages);
  Predicate remote = program.sections()[optimize].when;
  remote.flag = program.add_flag("update what other ranks own");
  const SectionId never = program.add_section("update_remote", remote);
  const SectionId sync = program.add_section("gather_states", {.training = false, .sync = true});
  const std::map<VarId, std::vector<VarId>> states = states_of_updates(program);
  move_foreign_updates(program, optimize, never, owners, place);
  for (const auto& [owner, parameters] : by_owner(owners)) {
    std::vector<VarId> all;
    for (const VarId parameter : parameters) {
      const auto found = states.find(parameter);
      if (found == states.end()) continue;
      all.insert(all.end(), found->second.begin(), found->second.end());
    }
    if (!all.empty()) broadcast(program, sync, all, owner, messages);
  }
}

int broadcast_from_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                          bool fuse, const OwnerMessages& messages,
                          const std::set<VarId>& trained_later) {
  int count = 0;
  for (const auto& [owner, parameters] : by_owner(owners)) {
    std::vector<VarId> message;
    for (const VarId parameter : parameters) {
      const auto later =
          message.empty() ? trained_later.end() : trained_later.upper_bound(message.back());
      const bool apart = !fuse || (later != trained_later.end() && *later < parameter);
      if (apart && !message.empty()) {
        count += broadcast(program, optimize, message, owner, messages);
        message.clear();
      }
      message.push_back(parameter);
    }
    if (!message.empty()) count += broadcast(program, optimize, message, owner, messages);
  }
  for (const auto& [parameter, owner] : owners) {
    if (owner != place) program.append_copy(optimize, parameter);
  }
  return count;
}

}  // namespace fleet
