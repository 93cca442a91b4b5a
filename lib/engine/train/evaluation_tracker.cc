#include "train/evaluation_tracker.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "base/number_text.h"
#include "base/text.h"
#include "models/named_metrics.h"
#include "train/evaluation_policy.h"

namespace fleet {
namespace {

constexpr char kKeepBest[] = "checkpoint.keep_best";
constexpr char kEarlyStopping[] = "train.early_stopping";

// Whether larger values are better: as `mode` says; by default as the task declares.
bool is_max(const std::string& metric, const std::string& mode,
            const std::vector<MetricDef>& metrics) {
  if (mode != "auto") return mode == "max";
  const auto found = std::ranges::find(metrics, metric, &MetricDef::name);
  return found != metrics.end() && found->larger_is_better;
}

// Whether the value beats the best so far by more than delta.
bool is_better(const BestValue& best, double value, bool max, double delta) {
  if (!std::isfinite(value)) return false;
  if (best.step < 0) return true;
  return max ? value > best.value + delta : value < best.value - delta;
}

void check_metric(const std::string& key, const std::string& metric,
                  const std::vector<MetricDef>& metrics, const std::vector<std::string>& more) {
  if (metrics.empty()) {
    throw Error(ErrorCode::kUsage, "needs evaluations, but there are none", key,
                "set test data (data.test) and set train.evaluate_every to 1 or more");
  }
  std::vector<std::string> known;
  for (const MetricDef& def : metrics) known.push_back(def.name);
  if (std::ranges::find(known, metric) != known.end()) return;
  for (const std::string& name : more) {
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  }
  const std::string near = nearest_name(metric, known);
  const std::vector<std::string> tasks = tasks_with_metric(metric);
  const std::string hint = !near.empty()    ? "did you mean '" + near + "'? "
                           : !tasks.empty() ? "the task " + join(tasks, " or ") + " has it; "
                                            : "";
  throw Error(ErrorCode::kUsage, "evaluations give no '" + metric + "'", key + ".metric",
              hint + "choose one of " + join(known, ", "));
}

// A schedule observes the loss, or the task's main metric if larger is better for it.
void check_observed(const Job& job, const EvaluationFacts& facts) {
  if (!job.schedule.has("metric") || job.schedule.text("metric") == "loss") return;
  const std::string& metric = job.schedule.text("metric");
  std::vector<std::string> known = {"loss"};
  for (const MetricDef& def : facts.metrics) {
    if (def.name == facts.headline && def.larger_is_better) known.push_back(def.name);
  }
  if (metric == known.back()) return;
  throw Error(ErrorCode::kUsage, "the schedule cannot observe '" + metric + "'",
              "learning_rate.metric", "choose one of " + join(known, ", "));
}

// The jobs and schedules that cannot do without evaluations.
void check_test_data(const Job& job, const EvaluationFacts& facts) {
  if (job.train.boolean("evaluate_only") && !facts.has_data) {
    throw Error(ErrorCode::kUsage, "there are no test data", "train.evaluate_only",
                "set data.test, or data.validation_split");
  }
  if (!facts.schedule_observes) return;
  check_observed(job, facts);
  if (facts.has_data && job.train.integer("evaluate_every") > 0) return;
  throw Error(
      ErrorCode::kUsage, "the schedule needs evaluations, but there are none",
      "learning_rate.name " + job.schedule.text("name"),
      "set test data (data.test, or data.validation_split), and train.evaluate_every to 1 or more");
}

}  // namespace

std::unique_ptr<EvaluationTracker> make_evaluation_tracker(const Job& job,
                                                           const EvaluationFacts& facts) {
  check_test_data(job, facts);
  std::vector<MetricDef> metrics;
  if (EvaluationPolicy(job, facts.has_data, 1).evaluates()) metrics = facts.metrics;
  return std::make_unique<EvaluationTracker>(job, metrics, facts.more_metrics);
}

EvaluationTracker::EvaluationTracker(const Job& job, const std::vector<MetricDef>& metrics,
                                     const std::vector<std::string>& more) {
  const std::string kept = job.checkpoint.text("keep_best.metric");
  const std::string stopping = job.train.text("early_stopping.metric");
  if (!kept.empty()) check_metric(kKeepBest, kept, metrics, more);
  if (!stopping.empty()) check_metric(kEarlyStopping, stopping, metrics, more);
  record_.kept.metric = kept;
  record_.stopping.metric = stopping;
  kept_max_ = is_max(kept, job.checkpoint.text("keep_best.mode"), metrics);
  stopping_max_ = is_max(stopping, job.train.text("early_stopping.mode"), metrics);
  patience_ = job.train.integer("early_stopping.patience");
  min_delta_ = job.train.number("early_stopping.min_delta");
}

bool EvaluationTracker::observe(int64_t step, const EvaluatedMetrics& metrics, bool counts) {
  if (step <= record_.observed_step) return false;
  record_.observed_step = step;
  if (may_stop() && counts) {
    const double value = metrics.at(record_.stopping.metric);
    const bool better = is_better(record_.stopping, value, stopping_max_, min_delta_);
    record_.without = better ? 0 : record_.without + 1;
    if (better) record_.stopping = {record_.stopping.metric, value, step};
  }
  if (!keeps_best()) return false;
  const double value = metrics.at(record_.kept.metric);
  if (!is_better(record_.kept, value, kept_max_, 0)) return false;
  record_.kept = {record_.kept.metric, value, step};
  return true;
}

std::string EvaluationTracker::why_it_stops() const {
  const BestValue& best = record_.stopping;
  const std::string by = min_delta_ > 0 ? " by more than " + number_text(min_delta_) : "";
  return best.metric + " has not been better than " + number_text(best.value) + " (step " +
         std::to_string(best.step) + ")" + by + " in " + std::to_string(record_.without) +
         (record_.without == 1 ? " evaluation" : " evaluations");
}

void EvaluationTracker::restore(const EvaluationRecord& record) {
  if (record.kept.metric == record_.kept.metric) record_.kept = record.kept;
  if (record.stopping.metric == record_.stopping.metric) {
    record_.stopping = record.stopping;
    record_.without = record.without;
  }
  record_.observed_step = record.observed_step;
}

void add_keep_best_keys(Schema* checkpoint) {
  checkpoint
      ->text("keep_best.metric", "",
             "also keep the checkpoint with the best value of this metric of the evaluations: "
             "loss, acc1, macro_f1...; \"\": none")
      .choice("keep_best.mode", "auto", {"auto", "min", "max"},
              "whether the best value is the smallest or the largest; auto: as the "
              "metric says, max for an accuracy");
}

void add_early_stopping_keys(Schema* train) {
  train
      ->text("early_stopping.metric", "",
             "end training when this metric of the evaluations stops improving: loss, acc1, "
             "macro_f1...; \"\": never")
      .choice("early_stopping.mode", "auto", {"auto", "min", "max"},
              "whether the best value is the smallest or the largest; auto: as the "
              "metric says, max for an accuracy")
      .integer("early_stopping.patience", 3, 1, 9e15,
               "evaluations without improvement after which training ends")
      .number("early_stopping.min_delta", 0, 0, 1e300, "an improvement must exceed this");
}

void expand_evaluation_keys(ConfigTree* tree) {
  for (const std::string key : {kKeepBest, kEarlyStopping}) {
    if (tree->peek(key)) tree->rename(key, key + ".metric");
  }
}

void add_followed_metrics(const Settings& settings, ConfigTree* tree) {
  if (!settings.has("train.metrics")) return;
  std::vector<std::string> metrics = settings.texts("train.metrics");
  for (const std::string key : {kKeepBest, kEarlyStopping}) {
    const std::string name = settings.text(key + ".metric");
    if (!named_metric_registry().find(name)) continue;
    if (std::ranges::find(metrics, name) != metrics.end()) continue;
    metrics.push_back(name);
    tree->set("train.metrics", Json(metrics).dump(), key + ".metric");
  }
}

}  // namespace fleet
