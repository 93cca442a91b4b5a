// fuse_elementwise: chains and trees of elementwise operations of one shape become one operation
// (ops/fused_elementwise.cc). Intermediate values stay in registers or the first cache; only values
// that others read are written to memory. Operations declare themselves elementwise
// (trait Elementwise). Runs after the backward pass, so that both directions are fused. Operations
// of different sections are never fused.
//
// Every operation starts as its own group. If one reads another's output, their groups are merged
// if the result can run at the position of either: at the later one's if no other operation in
// between reads or overwrites what the earlier one writes or reads; at the earlier one's if all
// inputs of the later one exist by then.
//
// A group recomputes values of another group if that makes it read less: backward chains then need
// only the input of the forward chain, and its intermediate values are neither written nor stored.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ops/element_formula.h"
#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

struct Group {
  std::vector<int> ops;  // ascending
  int slot = -1;         // the operation at whose position it runs
  // Operations of other groups that it recomputes, ascending.
  std::vector<int> again;
};

// A group as one operation.
struct Fused {
  ElementFormula formula;
  std::vector<VarId> inputs, outputs;
};

class FuseElementwise : public Pass {
 public:
  explicit FuseElementwise(const Attributes& options) : keep_(options.texts("keep")) {}

  bool run(Program& program, const PassContext&) override {
    program_ = &program;
    uses_.emplace(program);
    for (const std::string& name : keep_) kept_.insert(program.find(name));
    for (VarId parameter : program.parameters()) kept_.insert(program.gradient(parameter));
    find_groups();
    const int count = static_cast<int>(program.ops().size());
    for (int i = 0; i < count; ++i) {
      if (group_of_[i] < 0) continue;
      for (VarId id : op(i).reads()) {
        for (int writer : uses_->writers(id)) {
          if (writer < i && group_of_[writer] >= 0) try_to_join(group_of_[writer], group_of_[i]);
        }
      }
    }
    for (int g : by_slot()) {
      while (compute_again(groups_[g])) {
      }
    }
    return rewrite();
  }

 private:
  const Op& op(int i) const { return program_->ops()[i]; }
  const Var& var(VarId id) const { return program_->var(id); }

  // Makes each operation that can be part of a formula a group.
  void find_groups() {
    group_of_.assign(program_->ops().size(), -1);
    for (size_t i = 0; i < program_->ops().size(); ++i) {
      const int at = static_cast<int>(i);
      if (!is_candidate(op(at))) continue;
      const Group alone{.ops = {at}, .slot = at};
      if (!fuse(alone)) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back(alone);
    }
  }

  static bool is_float(DType dtype) {
    return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat16;
  }

  bool is_candidate(const Op& op) const {
    if (!is_elementwise(op) || op.inputs.empty()) return false;
    const Shape shape = shape_of(op);
    bool same_shape = false;
    for (VarId id : op.reads()) {
      if (!is_float(var(id).dtype)) return false;
      same_shape = same_shape || var(id).shape == shape;
    }
    for (VarId id : op.writes()) {
      const Var& out = var(id);
      if (!is_float(out.dtype) || out.shape != shape || out.kind != VarKind::kTemporary ||
          uses_->writers(id).size() != 1) {
        return false;
      }
    }
    return same_shape;
  }

  const Shape& shape_of(const Op& op) const {
    for (VarId id : op.writes()) return var(id).shape;
    FLEET_CHECK(false, op.type() + " has no output");
  }

  // The current position of an operation in the order.
  int slot_of(int i) const { return group_of_[i] < 0 ? i : groups_[group_of_[i]].slot; }
  static bool contains(const Group& group, int i) {
    return std::binary_search(group.ops.begin(), group.ops.end(), i);
  }

  // Whether, from position `begin` to `end`, no operation other than the members writes a variable
  // that `moved` reads, or reads one that it writes.
  bool can_move(const Group& moved, const Group& other, int begin, int end) const {
    const auto is_between = [&](int i) {
      if (contains(moved, i) || contains(other, i)) return false;
      return slot_of(i) >= begin && slot_of(i) <= end;
    };
    for (int i : moved.ops) {
      for (VarId id : op(i).reads()) {
        if (std::any_of(uses_->writers(id).begin(), uses_->writers(id).end(), is_between))
          return false;
      }
      for (VarId id : op(i).writes()) {
        if (std::any_of(uses_->readers(id).begin(), uses_->readers(id).end(), is_between))
          return false;
      }
    }
    return true;
  }

  void try_to_join(int a, int b) {
    if (a == b) return;
    const int from = groups_[a].slot < groups_[b].slot ? a : b, to = a + b - from;
    const Group &early = groups_[from], &late = groups_[to];
    const Op &first = op(early.slot), &second = op(late.slot);
    if (first.section != second.section || first.stream != second.stream ||
        shape_of(first) != shape_of(second)) {
      return;
    }
    Group joined;
    std::merge(early.ops.begin(), early.ops.end(), late.ops.begin(), late.ops.end(),
               std::back_inserter(joined.ops));
    if (can_move(early, late, early.slot, late.slot)) {
      joined.slot = late.slot;
    } else if (can_move(late, early, early.slot, late.slot)) {
      joined.slot = early.slot;
    } else {
      return;
    }
    if (!fuse(joined)) return;
    groups_[from] = joined;
    for (int i : joined.ops) group_of_[i] = from;
    groups_[to].ops.clear();
  }

  // Whether an operation outside the group reads it, or may. Groups that recompute it do not count.
  bool is_needed(const Group& group, VarId id) const {
    const std::vector<int>& readers = uses_->readers(id);
    const int writer = uses_->writers(id)[0];
    return readers.empty() || kept_.contains(id) ||
           !std::all_of(readers.begin(), readers.end(), [&](int i) {
             return contains(group, i) ||
                    (group_of_[i] >= 0 && is_in(groups_[group_of_[i]].again, writer));
           });
  }

  static bool is_in(const std::vector<int>& ops, int i) {
    return std::binary_search(ops.begin(), ops.end(), i);
  }
  static std::vector<int> joined(const std::vector<int>& a, const std::vector<int>& b) {
    std::vector<int> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    return all;
  }

  std::vector<int> by_slot() const {
    std::vector<int> order;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (!groups_[g].ops.empty()) order.push_back(static_cast<int>(g));
    }
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return groups_[a].slot < groups_[b].slot; });
    return order;
  }

  size_t bytes_of(const std::vector<VarId>& vars) const {
    size_t bytes = 0;
    for (VarId id : vars) bytes += var(id).shape.elements() * size_of(var(id).dtype);
    return bytes;
  }

  // Adds the operations of `from` that `id` is computed by.
  void add_makers(const std::vector<int>& from, VarId id, std::set<int>& makers) const {
    if (uses_->writers(id).size() != 1 || !is_in(from, uses_->writers(id)[0])) return;
    if (!makers.insert(uses_->writers(id)[0]).second) return;
    for (VarId input : op(uses_->writers(id)[0]).reads()) add_makers(from, input, makers);
  }

  // Whether it still has its earlier value at the group's position.
  bool lasts(VarId id) const {
    return uses_->writers(id).size() == (var(id).kind == VarKind::kTemporary ? 1 : 0);
  }

  static std::vector<VarId> without(std::vector<VarId> from, const std::vector<VarId>& those) {
    std::erase_if(
        from, [&](VarId id) { return std::find(those.begin(), those.end(), id) != those.end(); });
    return from;
  }

  // Whether `then` reads less than `now`, and its new inputs, which must stay live until then, are
  // no larger than the values that need no longer be stored.
  bool pays(const Group& group, const Fused& now, const Fused& then) const {
    if (bytes_of(then.inputs) >= bytes_of(now.inputs)) return false;
    const std::vector<VarId> more = without(then.inputs, now.inputs);
    std::vector<VarId> less = without(now.inputs, then.inputs);
    std::erase_if(less, [&](VarId id) {
      const Group& maker = groups_[group_of_[uses_->writers(id)[0]]];
      return kept_.contains(id) ||
             !std::all_of(uses_->readers(id).begin(), uses_->readers(id).end(), [&](int i) {
               return contains(maker, i) || contains(group, i) ||
                      (group_of_[i] >= 0 &&
                       is_in(groups_[group_of_[i]].again, uses_->writers(id)[0]));
             });
    });
    return std::all_of(more.begin(), more.end(), [&](VarId id) { return lasts(id); }) &&
           bytes_of(more) <= bytes_of(less);
  }

  // Recomputes an input that another group has made, if the group then reads less. Returns whether
  // it does.
  bool compute_again(Group& group) {
    const Fused now = *fuse(group);
    for (VarId id : now.inputs) {
      const int writer = uses_->writers(id).size() == 1 ? uses_->writers(id)[0] : -1;
      if (writer < 0 || group_of_[writer] < 0) continue;
      const Group& other = groups_[group_of_[writer]];
      if (shape_of(op(writer)) != shape_of(op(group.slot))) continue;
      const std::vector<int> from = joined(other.ops, other.again);
      std::set<int> makers;
      for (VarId input : now.inputs) add_makers(from, input, makers);
      Group trial = group;
      trial.again = joined(group.again, std::vector<int>(makers.begin(), makers.end()));
      const std::optional<Fused> then = fuse(trial);
      if (!then || !pays(group, now, *then)) continue;
      group = trial;
      return true;
    }
    return false;
  }

  // Empty if it exceeds the limits of the kernels.
  std::optional<Fused> fuse(const Group& group) const {
    Fused fused;
    std::map<VarId, int> values;
    size_t narrowest = sizeof(double);
    for (int i : joined(group.again, group.ops)) {
      if (!add_to_formula(*program_, op(i), fused.formula, values, fused.inputs)) return {};
      for (VarId id : op(i).outputs) {
        if (id == kNoVar || !contains(group, i) || !is_needed(group, id)) continue;
        fused.outputs.push_back(id);
        fused.formula.results.push_back(values.at(id));
        narrowest = std::min(narrowest, size_of(var(id).dtype));
      }
    }
    // Broadcast inputs must be smaller than every output (ops/fused_elementwise.cc).
    const Shape& shape = shape_of(op(group.slot));
    for (VarId id : fused.inputs) {
      if (var(id).shape != shape && size_of(var(id).dtype) > narrowest) return {};
    }
    if (fused.inputs.size() > kMaxElementInputs || fused.outputs.size() > kMaxElementOutputs) {
      return {};
    }
    const ElementProgram code = assign_registers(fused.formula);
    const bool fits = code.registers <= kMaxElementRegisters &&
                      static_cast<int>(code.lines.size()) <= kMaxElementLines;
    return fits ? std::optional(std::move(fused)) : std::nullopt;
  }

  Op make(const Group& group, const Fused& fused) const {
    const Op& like = op(group.slot);
    std::vector<DType> types;
    for (VarId id : fused.outputs) types.push_back(var(id).dtype);
    Op made = program_->make_op(like.section, "fused_elementwise", fused.inputs, fused.outputs,
                                fused_attributes(fused.formula, shape_of(like), types));
    made.stream = like.stream;
    return made;
  }

  bool rewrite() {
    std::vector<Op> ops;
    int in_training = 0;
    bool changed = false;
    for (size_t i = 0; i < program_->ops().size(); ++i) {
      const int at = static_cast<int>(i);
      const Group* group = group_of_[i] < 0 ? nullptr : &groups_[group_of_[i]];
      if (!group) {
        ops.push_back(op(at));
        continue;
      }
      if (group->slot != at) continue;
      const Fused fused = *fuse(*group);
      if (fused.outputs.empty()) continue;  // others recompute it
      if (group->ops.size() == 1 && group->again.empty()) {
        ops.push_back(op(at));
      } else {
        ops.push_back(make(*group, fused));
        in_training += program_->sections()[op(at).section].when.training;
        changed = true;
      }
    }
    program_->ops() = std::move(ops);
    log_fused("fuse_elementwise", in_training);
    return changed;
  }

  Program* program_ = nullptr;
  const std::vector<std::string> keep_;
  std::set<VarId> kept_;
  std::optional<Uses> uses_;
  std::vector<int> group_of_;  // by operation; -1: not elementwise
  std::vector<Group> groups_;
};

}  // namespace

FLEET_PASS(fuse_elementwise) {
  def.help = "fuses chains of elementwise operations";
  def.options = {{"keep", std::vector<std::string>()}};  // variables that the host reads
  def.create = create_pass<FuseElementwise>;
}

}  // namespace fleet
