// fuse_all_optimizer_ops: merges the updates of many parameters into one operation
// (optim/update_op.h), and so into one kernel. Updates are merged if they have the same type, equal
// attributes (but for the keys of rounding), equal other inputs and equal data types. Runs after
// append_updates().
#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "base/number_text.h"
#include "optim/update_op.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

class FuseAllOptimizerOps : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    std::map<std::string, std::vector<int>> groups;  // by the properties that must be equal
    std::map<std::string, int> kinds;
    for (size_t i = 0; i < program.ops().size(); ++i) {
      const Op& op = program.ops()[i];
      if (!is_update(op)) continue;
      groups[key_of(program, op)].push_back(static_cast<int>(i));
      ++kinds[op.type()];
    }
    std::vector<bool> removed(program.ops().size(), false);
    bool merged_any = false;
    for (const auto& [key, members] : groups) {
      if (members.size() < 2 || !can_wait(program, members)) continue;
      merge(program, members);
      for (size_t i = 0; i + 1 < members.size(); ++i) removed[members[i]] = true;
      merged_any = true;
    }
    if (!merged_any) return false;
    remove_ops(program, removed);
    for (const auto& [kind, count] : kinds) {
      spdlog::info(
          "Find {} operators : {}, and {} for dense gradients. To make the speed faster, those "
          "optimization are fused during training.",
          kind, count, count);
    }
    return true;
  }

 private:
  static size_t other_inputs(const Op& op) { return op.def->inputs.size() - 1; }

  static std::string key_of(const Program& program, const Op& op) {
    std::string key = op.type() + "/" + std::to_string(op.section);
    for (const auto& [name, value] : op.attributes.all()) {
      key += "/" + name + (name == kRoundingKeys ? "" : exact(value));
    }
    for (size_t i = 0; i < other_inputs(op); ++i) key += "/" + std::to_string(op.inputs[i]);
    const size_t members = op.def->find_trait<ParameterUpdate>()->input_group.size();
    for (size_t i = 0; i < members; ++i) {
      key += std::string("/") + name_of(program.var(op.inputs[other_inputs(op) + i]).dtype);
    }
    const VarId copy = op.outputs.back();
    return key + "/" + (copy == kNoVar ? "-" : name_of(program.var(copy).dtype));
  }

  // Printed numbers are rounded, but two different values must have different texts.
  static std::string exact(const Attribute& value) {
    const double* number = std::get_if<double>(&value);
    return number ? format_printf("%a", *number) : text_of(value);
  }

  // Whether no operation in between uses what the members other than the last write: they then run
  // at the last one's position.
  static bool can_wait(const Program& program, const std::vector<int>& members) {
    std::set<VarId> written;
    size_t next = 0;
    for (int i = members.front(); i < members.back(); ++i) {
      const Op& op = program.ops()[i];
      if (next < members.size() && members[next] == i) {
        ++next;
        written.insert(op.outputs.begin(), op.outputs.end());
        written.erase(kNoVar);
        continue;
      }
      const auto touched = [&](VarId id) { return written.contains(id); };
      if (std::any_of(op.inputs.begin(), op.inputs.end(), touched) ||
          std::any_of(op.outputs.begin(), op.outputs.end(), touched)) {
        return false;
      }
    }
    return true;
  }

  static void merge(Program& program, const std::vector<int>& members) {
    Op& last = program.ops()[members.back()];
    const size_t others = other_inputs(last);
    std::vector<VarId> inputs(last.inputs.begin(), last.inputs.begin() + others), outputs;
    Attributes attributes = last.attributes;
    std::vector<int64_t> keys;
    for (int member : members) {
      const Op& op = program.ops()[member];
      if (op.attributes.has(kRoundingKeys)) {
        const std::vector<int64_t>& own = op.attributes.integers(kRoundingKeys);
        keys.insert(keys.end(), own.begin(), own.end());
      }
      inputs.insert(inputs.end(), op.inputs.begin() + others, op.inputs.end());
      outputs.insert(outputs.end(), op.outputs.begin(), op.outputs.end());
    }
    if (!keys.empty()) attributes.set(kRoundingKeys, keys);
    last = program.make_op(last.section, last.type(), inputs, outputs, attributes);
  }
};

}  // namespace

FLEET_PASS(fuse_all_optimizer_ops) {
  def.help = "merges the updates of many parameters into one operation";
  def.create = create_pass<FuseAllOptimizerOps>;
}

}  // namespace fleet
