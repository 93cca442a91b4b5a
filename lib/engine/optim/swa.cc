#include "optim/swa.h"

#include <algorithm>
#include <set>

#include "optim/averages.h"

namespace fleet {
namespace {

// 1 / n as the rate of an update, by the formula of a warm-up.
const EmaOptions kMean = {.decay = 1, .warmup = true, .gamma = 1, .power = 1};

// The forward pass once more, as far as running statistics depend on it, and the mean of these over
// batches.
class Statistics {
 public:
  Statistics(Program& program, SectionId forward) : program_(program), forward_(forward) {}

  // -1: the model has no running statistics.
  SectionId append() {
    const std::vector<Op> ops = needed_ops();
    if (ops.empty()) return -1;
    section_ = program_.add_section(kStatisticsSection, {.from_step = -kForever, .until_step = 0});
    for (const Op& op : ops) program_.ops().push_back(repeated(op));
    return section_;
  }

  // Call after Averages::redirect(): the averages are the statistics of the batches so far.
  void add_up(const Averages& averages) {
    const VarId batches = program_.state(kStatisticsBatches, {1}, Init(), DType::kInt64);
    program_.append(section_, "increment", {batches, kNoVar}, {batches});
    const VarId rate = program_.emit(section_, "ema_rate", {batches},
                                     {{"decay", kMean.decay},
                                      {"warmup", kMean.warmup},
                                      {"gamma", kMean.gamma},
                                      {"power", kMean.power}},
                                     "statistics_rate")[0];
    for (const auto& [statistic, own] : of_batch_) {
      program_.append(section_, "ema", {rate, kNoVar, kNoVar, kNoVar, averages.of(statistic), own},
                      {averages.of(statistic), kNoVar});
    }
  }

 private:
  bool is_statistic(VarId id) const {
    return id != kNoVar && program_.var(id).kind == VarKind::kState;
  }

  std::vector<Op> needed_ops() const {
    std::set<VarId> needed;
    std::vector<Op> ops;
    for (auto op = program_.ops().rbegin(); op != program_.ops().rend(); ++op) {
      if (op->section != forward_) continue;
      const bool wanted = std::ranges::any_of(
          op->outputs, [&](VarId id) { return is_statistic(id) || needed.contains(id); });
      if (!wanted) continue;
      for (const VarId id : op->inputs) {
        if (id != kNoVar && program_.var(id).kind == VarKind::kTemporary) needed.insert(id);
      }
      ops.push_back(*op);
    }
    std::ranges::reverse(ops);
    return ops;
  }

  Op repeated(Op op) {
    const std::vector<VarId> read = op.inputs;
    op.section = section_;
    for (std::vector<VarId>* vars : {&op.inputs, &op.after}) {
      for (VarId& id : *vars) {
        if (id != kNoVar && values_.contains(id)) id = values_.at(id);
      }
    }
    for (VarId& id : op.outputs) {
      if (id == kNoVar) continue;
      const bool updates = std::ranges::find(read, id) != read.end();
      if (updates && values_.contains(id)) {
        id = values_.at(id);
        continue;
      }
      const bool statistic = is_statistic(id);
      Var copy = program_.var(id);
      copy.kind = VarKind::kTemporary;
      copy.per_rank = false;
      copy.name += "@SWA";
      while (program_.find(copy.name) != kNoVar) copy.name += "A";
      const VarId own = program_.add_var(copy);
      (statistic ? of_batch_ : values_)[id] = own;
      if (statistic) op.attributes.set("momentum", 1.0);  // the batch's alone
      id = own;
    }
    return op;
  }

  Program& program_;
  const SectionId forward_;
  SectionId section_ = -1;
  std::map<VarId, VarId> values_, of_batch_;  // by variable of the forward pass; by statistic
};

}  // namespace

void append_swa(Program& program, SectionId forward, SectionId evaluate) {
  Averages averages(program, kMean);
  averages.add_all(forward, evaluate);
  Statistics statistics(program, forward);
  const SectionId again = statistics.append();
  averages.redirect(again < 0 ? std::set<SectionId>{evaluate}
                              : std::set<SectionId>{evaluate, again});
  averages.start(program.add_section("start_swa", {.training = false, .refresh = true}), evaluate);
  averages.start(program.add_section("follow_swa", {.training = false, .sync = true}), evaluate);
  averages.update(program.add_section(kEmaSection, {.flag = program.add_flag(kAverageFlag)}),
                  kNoVar, /*copies=*/true);
  if (again >= 0) statistics.add_up(averages);
  verify(program);
}

std::vector<VarId> averaged_statistics(const Program& program) {
  std::vector<VarId> averages;
  const SectionId section = program.find_section(kStatisticsSection);
  for (const Op& op : program.ops()) {
    if (section >= 0 && op.section == section && op.type() == "ema") {
      averages.push_back(op.outputs[0]);
    }
  }
  return averages;
}

}  // namespace fleet
