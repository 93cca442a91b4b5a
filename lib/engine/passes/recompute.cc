// recompute: values computed between two checkpoints are not kept for the backward pass but
// computed again when the backward pass reaches them (Chen et al. 2016, "Training Deep Nets with
// Sublinear Memory Cost", in the form of Paddle's RecomputeOptimizer). A segment lies between two
// checkpoints, or between the input and the first one; values after the last one are kept. Runs
// after the backward pass and the fusions, so that the second run uses the same operations and
// gives the same bits.
//
// Besides checkpoints, values that another segment or another stage of a pipeline reads are kept,
// and the results of operations that must not run twice: collectives, and those with the trait
// KeepsResults. Running statistics are not updated a second time.
#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "ops/collective.h"
#include "ops/recomputation.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace fleet {
namespace {

class Recompute : public Pass {
 public:
  explicit Recompute(const Attributes& options)
      : forward_name_(options.text("forward")), checkpoints_(options.texts("checkpoints")) {}

  bool run(Program& program, const PassContext& context) override {
    program_ = &program;
    forward_ = program.find_section(forward_name_);
    backward_ = program.find_section("backward");
    FLEET_CHECK(forward_ >= 0 && backward_ >= 0, "recompute before the backward pass");
    find_segments();
    find_kept();
    find_wanted();
    insert_copies();
    if (context.rank == 0) {
      spdlog::info("recompute: {} segments; {} of {} forward operations run again in backward",
                   segments_, repeated_, count_forward());
    }
    return repeated_ > 0;
  }

 private:
  const std::vector<Op>& ops() const { return program_->ops(); }
  bool is_temporary(VarId id) const { return program_->var(id).kind == VarKind::kTemporary; }
  int count_forward() const {
    return static_cast<int>(std::count_if(ops().begin(), ops().end(),
                                          [this](const Op& op) { return op.section == forward_; }));
  }

  // The segment of each operation of the forward part; -1 after the last checkpoint.
  void find_segments() {
    std::set<VarId> wanted;
    for (const std::string& name : checkpoints_) wanted.insert(program_->find(name));
    segment_.assign(ops().size(), -1);
    std::vector<size_t> open;
    for (size_t i = 0; i < ops().size(); ++i) {
      if (ops()[i].section != forward_) continue;
      open.push_back(i);
      for (const VarId id : ops()[i].outputs) {
        if (id == kNoVar || wanted.erase(id) == 0) continue;
        kept_.insert(id);
        for (const size_t op : open) segment_[op] = segments_;
        if (!open.empty()) ++segments_;
        open.clear();
      }
    }
    wanted.erase(kNoVar);
    FLEET_CHECK(wanted.empty(), "checkpoint '" + program_->var(*wanted.begin()).name +
                                    "' is not made by the forward part");
    writer_.assign(program_->var_count(), -1);
    for (size_t i = 0; i < ops().size(); ++i) {
      for (const VarId id : ops()[i].outputs) {
        if (id != kNoVar && ops()[i].section == forward_) writer_[id] = static_cast<int>(i);
      }
    }
  }

  // Whether the operation may run twice in a step, apart from its updates of states.
  bool is_repeatable(const Op& op) const {
    if (is_collective(op) || op.def->find_trait<KeepsResults>()) return false;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const VarId id = op.outputs[i];
      if (id == kNoVar || is_temporary(id)) continue;
      const std::vector<SlotDef>& slots = op.def->outputs;
      if (slots[std::min(i, slots.size() - 1)].kind != Slot::kOptional) return false;
    }
    return true;
  }

  static int64_t stage_of(const Op& op) {
    return op.attributes.has(kStageAnnotation) ? op.attributes.integer(kStageAnnotation) : 0;
  }

  void find_kept() {
    for (size_t i = 0; i < ops().size(); ++i) {
      const Op& op = ops()[i];
      if (op.section == forward_ && !is_repeatable(op)) {
        kept_.insert(op.outputs.begin(), op.outputs.end());
      }
      if (op.section == backward_) continue;
      for (const VarId id : op.inputs) {
        const int writer = id == kNoVar ? -1 : writer_[id];
        if (writer < 0 || segment_[writer] < 0 || op.section != forward_) continue;
        if (segment_[writer] != segment_[i] || stage_of(ops()[writer]) != stage_of(op)) {
          kept_.insert(id);
        }
      }
    }
  }

  // The segment whose copies compute this variable; -1: it is kept.
  int segment_of(VarId id) const {
    if (id == kNoVar || writer_[id] < 0 || !is_temporary(id) || kept_.contains(id)) return -1;
    return segment_[writer_[id]];
  }

  // Finds the variables that copies compute, by segment, and the position of each segment's copies:
  // before the first backward operation that reads one.
  void find_wanted() {
    wanted_.resize(segments_);
    place_.assign(segments_, -1);
    for (size_t i = 0; i < ops().size(); ++i) {
      if (ops()[i].section != backward_) continue;
      for (const VarId id : ops()[i].inputs) {
        const int segment = segment_of(id);
        if (segment < 0) continue;
        wanted_[segment].insert(id);
        if (place_[segment] < 0) place_[segment] = static_cast<int>(i);
      }
    }
    for (size_t i = ops().size(); i-- > 0;) {
      if (segment_[i] < 0) continue;
      std::set<VarId>& wanted = wanted_[segment_[i]];
      const std::vector<VarId>& outputs = ops()[i].outputs;
      if (!any_of(outputs, wanted)) continue;
      for (const VarId id : ops()[i].inputs) {
        if (segment_of(id) == segment_[i]) wanted.insert(id);
      }
    }
  }

  static bool any_of(const std::vector<VarId>& ids, const std::set<VarId>& some) {
    return std::any_of(ids.begin(), ids.end(), [&](VarId id) { return some.contains(id); });
  }

  void insert_copies() {
    std::multimap<int, int> at;  // position -> segment
    for (int segment = 0; segment < segments_; ++segment) {
      if (place_[segment] >= 0) at.emplace(place_[segment], segment);
    }
    std::vector<Op> result;
    const std::vector<Op> old = ops();
    for (size_t i = 0; i < old.size(); ++i) {
      const auto [begin, end] = at.equal_range(static_cast<int>(i));
      for (auto here = begin; here != end; ++here) copy_segment(old, here->second, &result);
      result.push_back(old[i]);
      if (old[i].section != backward_) continue;
      for (VarId& id : result.back().inputs) {
        if (segment_of(id) >= 0) id = copies_.at(id);
      }
    }
    program_->ops() = std::move(result);
  }

  void copy_segment(const std::vector<Op>& old, int segment, std::vector<Op>* result) {
    const std::set<VarId>& wanted = wanted_[segment];
    for (size_t i = 0; i < old.size(); ++i) {
      if (segment_[i] != segment || !any_of(old[i].outputs, wanted)) continue;
      result->push_back(copy_of(old[i], wanted));
      ++repeated_;
    }
  }

  // The same operation in the backward pass, with its own outputs.
  Op copy_of(const Op& op, const std::set<VarId>& wanted) {
    std::vector<VarId> inputs = op.inputs, outputs = op.outputs;
    for (VarId& id : inputs) {
      if (const auto copy = copies_.find(id); copy != copies_.end()) id = copy->second;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const VarId id = outputs[i];
      if (id == kNoVar) continue;
      const std::vector<SlotDef>& slots = op.def->outputs;
      const bool optional = slots[std::min(i, slots.size() - 1)].kind == Slot::kOptional;
      if (optional && !wanted.contains(id)) {
        outputs[i] = kNoVar;
        continue;
      }
      outputs[i] = program_->temporary(program_->var(id).name + "@RECOMPUTED");
      if (!kept_.contains(id)) copies_[id] = outputs[i];
    }
    return program_->make_op(backward_, op.type(), inputs, outputs, op.attributes);
  }

  const std::string forward_name_;
  const std::vector<std::string> checkpoints_;
  Program* program_ = nullptr;
  SectionId forward_ = -1, backward_ = -1;
  int segments_ = 0, repeated_ = 0;
  std::vector<int> segment_;             // by operation
  std::vector<int> writer_;              // by variable; -1: not written in the forward part
  std::set<VarId> kept_;                 // computed in a segment, but not recomputed
  std::vector<std::set<VarId>> wanted_;  // by segment
  std::vector<int> place_;               // by segment; -1: nothing in it is read
  std::map<VarId, VarId> copies_;
};

}  // namespace

FLEET_PASS(recompute) {
  def.help = "computes values between checkpoints again in the backward pass";
  def.options = {{"forward", std::string("forward")}, {"checkpoints", std::vector<std::string>()}};
  def.create = create_pass<Recompute>;
}

}  // namespace fleet
