#include <algorithm>
#include <limits>
#include <set>

#include "ops/arithmetic.h"
#include "passes/pipeline.h"

namespace fleet {
namespace {

int64_t bytes_of(const Var& var) {
  return var.shape.elements() * static_cast<int64_t>(size_of(var.dtype));
}

// A byte to or from memory takes the time of this many additions or multiplications.
constexpr double kFlopsPerByte = 4;

// Costs of the operations of the forward section, including their share of the backward pass: it
// takes twice as long, except where nothing before the operation is trained.
class Costs {
 public:
  Costs(const Program& program, SectionId forward) : program_(program) {
    for (const Op& op : program.ops()) {
      if (op.section == forward) ops_.push_back(&op);
    }
    find_crossing();
    sums_ = {0};
    std::set<VarId> trained;
    for (const Op* op : ops_) {
      sums_.push_back(sums_.back() + cost(*op, &trained));
      const bool reads = std::any_of(op->inputs.begin(), op->inputs.end(), [&](VarId id) {
        return id != kNoVar && (program.var(id).kind == VarKind::kFeed || of_samples_.contains(id));
      });
      if (reads) of_samples_.insert(op->outputs.begin(), op->outputs.end());
    }
  }

  size_t count() const { return ops_.size(); }
  // Whether a stage may end with this operation: not with the cast of a parameter, whose reader
  // would then be on another stage.
  bool may_end(size_t i) const { return of_samples_.contains(ops_[i]->outputs[0]); }
  const Op& op(size_t i) const { return *ops_[i]; }
  // The cost of the operations from `begin` to before `end`, and of their messages.
  double between(size_t begin, size_t end) const {
    return sums_[end] - sums_[begin] + 2 * kFlopsPerByte * crossing_[begin];
  }

 private:
  // The bytes that operations from i on read of earlier ones.
  void find_crossing() {
    std::map<VarId, std::pair<size_t, size_t>> lives;  // written, last read
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const VarId id : ops_[i]->writes()) lives.try_emplace(id, i, i);
      for (const VarId id : ops_[i]->inputs) {
        const auto found = lives.find(id);
        if (found != lives.end()) found->second.second = i;
      }
    }
    crossing_.assign(ops_.size() + 1, 0);
    for (const auto& [id, life] : lives) {
      if (program_.var(id).kind != VarKind::kTemporary) continue;
      for (size_t i = life.first + 1; i <= life.second; ++i) {
        crossing_[i] += static_cast<double>(bytes_of(program_.var(id)));
      }
    }
  }

  double cost(const Op& op, std::set<VarId>* trained) const {
    double bytes = 0;
    bool before = false;
    for (const VarId id : op.vars()) {
      bytes += static_cast<double>(bytes_of(program_.var(id)));
      before = before || trained->contains(id);
    }
    const bool own = std::any_of(op.inputs.begin(), op.inputs.end(), [&](VarId id) {
      return id != kNoVar && program_.var(id).kind == VarKind::kParameter &&
             program_.var(id).trainable;
    });
    if (before || own) trained->insert(op.outputs.begin(), op.outputs.end());
    const double passes = before ? 3 : own ? 2 : 1;
    return passes * (operations_of(program_, op) + kFlopsPerByte * bytes);
  }

  const Program& program_;
  std::vector<const Op*> ops_;
  std::vector<double> sums_;      // over the operations before i
  std::vector<double> crossing_;  // by operation
  std::set<VarId> of_samples_;    // values that depend on feeds
};

// Finds the stage of each operation from its mark, or from its inputs.
class Finder {
 public:
  Finder(const Program& program, SectionId backward, int stages)
      : program_(program), backward_(backward), stages_(stages), made_(program.var_count(), -1) {}

  StageMap run() {
    for (const Op& op : program_.ops()) {
      const Predicate& when = program_.sections()[op.section].when;
      const bool samples = when.training || when.evaluation;
      const int stage = samples ? stage_of(op) : -1;
      map_.of_op.push_back(stage);
      if (stage >= 0) note(op, stage);
    }
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const auto found = map_.of_var.find(program_.var(id).copy_of);
      if (program_.var(id).copy_of != kNoVar && found != map_.of_var.end()) {
        map_.of_var[id] = found->second;
      }
    }
    return std::move(map_);
  }

 private:
  // Parameters and states that the model itself uses; not those of the loss scale.
  bool belongs_to_model(VarId id, const Op& op) const {
    const Var& var = program_.var(id);
    if (var.kind == VarKind::kParameter || var.copy_of != kNoVar) return true;
    return var.kind == VarKind::kState && op.section != backward_;
  }

  int stage_of(const Op& op) const {
    if (op.attributes.has(kStageAnnotation)) {
      return static_cast<int>(op.attributes.integer(kStageAnnotation));
    }
    int forward = -1, gradients = stages_;
    for (const VarId id : op.reads()) {
      const VarId whole = program_.var(id).copy_of == kNoVar ? id : program_.var(id).copy_of;
      const auto known = map_.of_var.find(whole);
      if (known != map_.of_var.end()) forward = std::max(forward, known->second);
      if (made_[id] < 0) continue;
      if (of_gradients_.contains(id)) {
        gradients = std::min(gradients, made_[id]);
      } else {
        forward = std::max(forward, made_[id]);
      }
    }
    if (forward >= 0) return forward;
    if (gradients < stages_) return gradients;
    return op.section == backward_ ? stages_ - 1 : 0;  // the gradient of the loss
  }

  void note(const Op& op, int stage) {
    for (const VarId id : op.writes()) {
      made_[id] = stage;
      if (op.section == backward_) of_gradients_.insert(id);
    }
    for (VarId id : op.vars()) {
      if (!belongs_to_model(id, op)) continue;
      if (program_.var(id).copy_of != kNoVar) id = program_.var(id).copy_of;
      const int before = map_.of_var.try_emplace(id, stage).first->second;
      if (before == stage) continue;
      if (before > stage || program_.var(id).kind != VarKind::kParameter) {
        refuse_sharing(id, before, stage);
      }
    }
  }

  // A later stage may read a parameter, such as a tied embedding: it gets the value by messages.
  void refuse_sharing(VarId id, int before, int stage) const {
    throw Error(ErrorCode::kUsage,
                "'" + program_.var(id).name + "' is used in stages " + std::to_string(before) +
                    " and " + std::to_string(stage),
                "strategy pipeline_configs.cut",
                "cut the model where all that share it are in one stage");
  }

  const Program& program_;
  const SectionId backward_;
  const int stages_;
  std::vector<int> made_;  // by variable: the stage that writes it
  std::set<VarId> of_gradients_;
  StageMap map_;
};

}  // namespace

void copy_stage(const Op& from, Op& to) {
  if (!from.attributes.has(kStageAnnotation)) return;
  to.attributes.set(kStageAnnotation, from.attributes.integer(kStageAnnotation));
}

// Whether this operation is the last of the stage.
static bool ends_stage(const Op& op, size_t stage, const std::vector<VarId>& ends) {
  return stage < ends.size() &&
         std::find(op.outputs.begin(), op.outputs.end(), ends[stage]) != op.outputs.end();
}

bool are_stage_ends(const Program& program, SectionId forward, const std::vector<VarId>& ends) {
  size_t stage = 0, operations = 0;
  for (const Op& op : program.ops()) {
    if (op.section != forward) continue;
    ++operations;
    if (!ends_stage(op, stage, ends)) continue;
    ++stage;
    operations = 0;
  }
  return stage == ends.size() && operations > 0;
}

void mark_stages(Program& program, SectionId forward, const std::vector<VarId>& ends) {
  int64_t stage = 0;
  for (Op& op : program.ops()) {
    if (op.section != forward) continue;
    op.attributes.set(kStageAnnotation, stage);
    if (ends_stage(op, static_cast<size_t>(stage), ends)) ++stage;
  }
}

std::vector<VarId> balanced_ends(const Program& program, SectionId forward, int stages) {
  const Costs costs(program, forward);
  const size_t count = costs.count();
  if (static_cast<size_t>(stages) > count) return {};
  // The smallest cost of the slowest of k + 1 stages that contain the operations before i; and
  // where the last of them begins.
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(stages, std::vector<double>(count + 1, kInfinite));
  std::vector<std::vector<size_t>> begins(stages, std::vector<size_t>(count + 1, 0));
  for (size_t end = 1; end <= count; ++end) best[0][end] = costs.between(0, end);
  for (int k = 1; k < stages; ++k) {
    for (size_t end = k + 1; end <= count; ++end) {
      for (size_t begin = k; begin < end; ++begin) {
        if (!costs.may_end(begin - 1)) continue;
        const double cost = std::max(best[k - 1][begin], costs.between(begin, end));
        if (cost >= best[k][end]) continue;
        best[k][end] = cost;
        begins[k][end] = begin;
      }
    }
  }
  std::vector<VarId> ends;
  size_t end = count;
  for (int k = stages - 1; k > 0; --k) {
    end = begins[k][end];
    if (end == 0) return {};  // too few places
    ends.push_back(costs.op(end - 1).outputs[0]);
  }
  std::reverse(ends.begin(), ends.end());
  return ends;
}

StageMap find_stages(const Program& program, SectionId backward, int stages) {
  return Finder(program, backward, stages).run();
}

}  // namespace fleet
