#include "train/finite_check.h"

#include <algorithm>
#include <map>

#include "exec/nan_check.h"
#include "train/rank_state.h"

namespace fleet {

OnNan on_nan_of(const Job& job) {
  const std::string& value = job.train.text("on_nan");
  if (value == "continue") return OnNan::kContinue;
  return value == "skip" ? OnNan::kSkip : OnNan::kStop;
}

std::string BadUpdates::text() const {
  const std::string subject = what == "loss" ? "the loss" : "the gradient of '" + what + "'";
  const std::string who = rank < 0 ? "" : " of rank " + std::to_string(rank);
  return subject + who + " is not finite";
}

std::string BadUpdates::left_out() const {
  const std::string more = std::to_string(count - 1);
  return text() + (count == 1 ? ": its update was left out"
                              : ": its update and " + more + " more were left out");
}

// The gradients whose update is left out if one of them is not finite: by loss scaling always, by
// the check of on_nan if training continues.
static std::set<VarId> gradients_left_out(const Program& program, OnNan on_nan) {
  std::set<VarId> gradients;
  for (const Op& op : program.ops()) {
    const bool scaled = op.type() == "check_finite_and_unscale";
    if (!scaled && (op.type() != "check_finite" || on_nan != OnNan::kSkip)) continue;
    gradients.insert(op.inputs.begin() + (scaled ? 1 : 2), op.inputs.end());
  }
  return gradients;
}

FiniteCheck::FiniteCheck(Executor& executor, Device& device, RankCoordinator& control, int rank,
                         OnNan on_nan)
    : executor_(executor), device_(device), control_(control), rank_(rank), on_nan_(on_nan) {
  const Program& program = executor.program();
  left_out_ = gradients_left_out(program, on_nan);
  record_ = program.find(kFiniteRecordName);
  skipped_ = program.find(kSkippedUpdatesName);
  if (record_ == kNoVar) return;
  for (const VarId parameter : program.parameters()) {
    names_.push_back(program.var(parameter).name);
  }
  for (const Op& op : program.ops()) {
    if (op.type() != "check_finite") continue;
    when_ = program.sections()[op.section].when;
    when_.flag = kNoFlag;  // parameter servers check the updates that do not run here
  }
}

// The parameters whose gradients the Plan of this step checks, as 1 + their places in names_; first
// 0 for the loss.
const std::vector<int64_t>& FiniteCheck::inputs_at(int64_t step) {
  int plan = executor_.selected();
  for (const auto& [first, selected] : selected_) {
    if (first <= step) plan = selected;
  }
  const auto [found, fresh] = inputs_.try_emplace(plan);
  if (!fresh) return found->second;
  const Program& program = executor_.plan(plan).program;
  std::map<VarId, int64_t> numbers;  // by gradient
  const std::vector<VarId> parameters = program.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    numbers[program.gradient(parameters[i])] = static_cast<int64_t>(i + 1);
  }
  found->second = {0};
  for (const Op& op : program.ops()) {
    if (op.type() != "check_finite") continue;
    for (size_t i = 2; i < op.inputs.size(); ++i) found->second.push_back(numbers[op.inputs[i]]);
  }
  return found->second;
}

void FiniteCheck::step_begins(const StepInfo& info) {
  if (first_step_ < 0) first_step_ = info.step;
  last_step_ = info.step;
  const int plan = executor_.selected();
  if (selected_.empty() || selected_.back().second != plan) selected_.emplace_back(info.step, plan);
}

int64_t FiniteCheck::step_of(int64_t check) const {
  for (int64_t step = first_step_; step < last_step_; ++step) {
    if (when_.holds({.step = step}) && --check == 0) return step;
  }
  return last_step_;
}

std::optional<BadUpdates> FiniteCheck::poll() {
  if (!enabled()) return std::nullopt;
  const std::vector<int64_t> record = executor_.values<int64_t>(record_);
  double own[3] = {};  // bad updates, step of the first one, its bad input
  if (record[1] > 0) {
    own[0] = static_cast<double>(record[1]);
    const int64_t step = step_of(record[2] - checks_);
    own[1] = static_cast<double>(step);
    own[2] = static_cast<double>(inputs_at(step).at(record[3]));
  }
  checks_ = record[0];
  first_step_ = -1;
  selected_.clear();
  std::optional<BadUpdates> found;
  double number = 0;
  bool all = true;
  const auto ranks = control_.by_rank(own);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const double count = ranks[rank][0], step = ranks[rank][1], what = ranks[rank][2];
    if (count == 0) continue;
    const bool earlier = !found || step < static_cast<double>(found->step) ||
                         (step == static_cast<double>(found->step) && what < number);
    const int64_t most = std::max<int64_t>(found ? found->count : 0, static_cast<int64_t>(count));
    if (earlier) {
      found = BadUpdates{.step = static_cast<int64_t>(step), .rank = static_cast<int>(rank)};
      number = what;
    }
    found->count = most;
  }
  if (!found) return std::nullopt;
  for (const auto& other : ranks) {
    const bool same_step = other[0] > 0 && other[1] == static_cast<double>(found->step);
    if (number == 0 && !same_step && on_nan_ != OnNan::kSkip) ranks_apart_ = true;
    all = all && same_step && other[2] == number;
  }
  if (all) found->rank = -1;
  found->what = number == 0 ? "loss" : names_[static_cast<size_t>(number) - 1];
  const int64_t fresh[kFiniteRecord] = {};
  executor_.write(record_, fresh);
  checks_ = 0;
  found_ += found->count;
  return found;
}

std::string FiniteCheck::stuck(int64_t max) {
  if (skipped_ == kNoVar || max == 0) return "";
  const double own = static_cast<double>(executor_.values<int64_t>(skipped_)[0]);
  double most = 0;  // a loss belongs to one rank
  for (const auto& one : control_.by_rank({&own, 1})) most = std::max(most, one[0]);
  if (most < static_cast<double>(max)) return "";
  return "the loss or a gradient of the last " + std::to_string(static_cast<int64_t>(most)) +
         " updates was not finite, and none of them was applied (train.max_skipped_updates)";
}

std::string FiniteCheck::bad_state() {
  const Program& program = executor_.program();
  executor_.synchronize();
  // Numbers differ between the Programs of a pipeline's stages; the order of saved ones does not.
  std::vector<VarId> saved;
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (is_saved(program.var(id))) saved.push_back(id);
  }
  double own = 0;  // 1 + the place among them
  for (size_t i = 0; i < saved.size() && own == 0; ++i) {
    const Var& var = program.var(saved[i]);
    if (!is_floating(var.dtype) || !saves({.rank = rank_}, var)) continue;
    if (left_out_.contains(saved[i])) continue;
    if (find_not_finite(executor_.argument(saved[i]), device_, executor_.stream())) {
      own = static_cast<double>(1 + i);
    }
  }
  for (const auto& bad : control_.by_rank({&own, 1})) {
    if (bad[0] > 0) return program.var(saved.at(static_cast<size_t>(bad[0]) - 1)).name;
  }
  return "";
}

}  // namespace fleet
