#include "models/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number_text.h"

namespace fleet {
namespace {

double metric_of(const MetricDef& metric, const MetricTable& table,
                 const std::vector<double>& sums) {
  const int over = table.sum_index(metric.sum), under = table.sum_index(metric.divisor);
  FLEET_CHECK(over >= 0 && under >= 0, "the metric " + metric.name + " names no sum");
  if (!(sums[under] > 0)) return 0;
  const double quotient = sums[over] / sums[under];
  return metric.of_quotient ? metric.of_quotient(quotient) : quotient;
}

}  // namespace

int MetricTable::sum_index(std::string_view name) const {
  const auto found = std::ranges::find(sums, name);
  return found == sums.end() ? -1 : static_cast<int>(found - sums.begin());
}

const MetricDef* MetricTable::find(std::string_view name) const {
  const auto found = std::ranges::find(metrics, name, &MetricDef::name);
  return found == metrics.end() ? nullptr : &*found;
}

MetricSums::MetricSums(std::shared_ptr<const MetricTable> table)
    : table_(std::move(table)), sums_(table_->sums.size()) {}

double MetricSums::value(std::string_view metric) const {
  const MetricDef* def = table_ ? table_->find(metric) : nullptr;
  if (!def) return 0;
  if (!def->collected) {
    return metric_of(*def, *table_, sums_) + (def->plus.empty() ? 0 : value(def->plus));
  }
  const auto found = collected_.find(metric);
  return found == collected_.end() ? std::nan("") : found->second;
}

double MetricSums::loss() const { return table_ ? value(table_->metrics[0].name) : 0; }

double MetricSums::headline() const {
  return table_ && !table_->headline.empty() ? value(table_->headline) : 0;
}

double MetricSums::items() const {
  return table_ ? sums_.at(static_cast<size_t>(table_->sum_index(table_->items))) : 0;
}

void MetricSums::add(const MetricSums& other) {
  if (!table_) *this = MetricSums(other.table_);
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
}

std::vector<std::pair<std::string, double>> MetricSums::values() const {
  std::vector<std::pair<std::string, double>> all;
  if (!table_) return all;
  for (const MetricDef& metric : table_->metrics) {
    if (metric.collected && !collected_.contains(metric.name)) continue;
    all.emplace_back(metric.name, value(metric.name));
  }
  return all;
}

std::string MetricSums::text() const {
  std::string text;
  for (const auto& [name, value] : values()) {
    const int decimals = table_->find(name)->decimals;
    text += (text.empty() ? "" : ", ") + name + ": " + format_printf("%.*f", decimals, value);
  }
  return text;
}

}  // namespace fleet
