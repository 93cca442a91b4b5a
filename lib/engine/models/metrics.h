// Metrics as a task declares them: quotients of sums, which can be added over batches and ranks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

struct MetricDef {
  std::string name;     // in lines, metrics.jsonl, TensorBoard, checkpoint.keep_best: "acc1"
  std::string sum;      // the metric is this sum ("hits") ...
  std::string divisor;  // ... divided by that one ("weight"); 0 if that is 0
  int decimals = 5;     // in lines
  bool larger_is_better = false;
  double (*of_quotient)(double) = nullptr;  // applied to the quotient: exp for a perplexity
  // No quotient of sums (mean average precision): an EvaluationCollector computes it over all
  // samples of an evaluation. Training lines do not have it.
  bool collected = false;
  // Another metric of the table that is added to the quotient: a loss may have several parts, each
  // with its own divisor. "": none.
  std::string plus = {};
};

// The metrics that a task declares. The first one is the loss: the schedule, the launcher's table
// and the check for NaN use it. The launcher shows the headline next to it.
struct MetricTable {
  std::vector<std::string> sums;  // names; MetricSums has a value for each
  std::vector<MetricDef> metrics;
  std::string headline;          // a metric; "": the loss only
  std::string items;             // the sum that counts samples or tokens
  std::string unit = "samples";  // its unit, plural: "samples", "tokens"
  // Metrics that train.metrics may name, whether or not the table has them.
  std::vector<std::string> more_metrics = {};

  int sum_index(std::string_view name) const;          // -1: none
  const MetricDef* find(std::string_view name) const;  // null: none
};

// The values of a table's sums over one step or one evaluation. Copyable; not thread-safe.
class MetricSums {
 public:
  MetricSums() = default;
  explicit MetricSums(std::shared_ptr<const MetricTable> table);  // all 0

  // A metric by its name: 0 if the table has none of this name, if nothing was added, or if its
  // divisor is 0. NaN for a collected metric that was not set.
  double value(std::string_view metric) const;
  double loss() const;      // the first metric
  double headline() const;  // 0 without one
  double items() const;     // samples or tokens, by their weights
  // The same, of an image_classification.
  double mean_loss() const { return loss(); }
  double acc1() const { return value("acc1"); }

  void add(const MetricSums& other);
  void set_collected(const std::string& metric, double value) { collected_[metric] = value; }

  // All metrics that have a value, in the order of the table: "loss: 0.12, acc1: 0.9".
  std::string text() const;
  // Names and values, in the same order.
  std::vector<std::pair<std::string, double>> values() const;

  const std::shared_ptr<const MetricTable>& table() const { return table_; }
  std::vector<double>& sums() { return sums_; }
  const std::vector<double>& sums() const { return sums_; }

 private:
  std::shared_ptr<const MetricTable> table_;
  std::vector<double> sums_;  // by index of table_->sums
  std::map<std::string, double, std::less<>> collected_;
};

}  // namespace fleet
