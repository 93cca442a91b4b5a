#include "models/metrics_numbers.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/named_metrics.h"

namespace fleet {
namespace {

// Finite, and not all equal.
bool varies(std::span<const double> values) {
  if (!std::ranges::all_of(values, [](double value) { return std::isfinite(value); })) return false;
  return std::ranges::any_of(values, [&](double value) { return value != values[0]; });
}

// Distances from the mean, divided by their norm. The division by the largest one keeps squares in
// range.
std::vector<double> normalized(std::span<const double> values) {
  const double mean =
      std::reduce(values.begin(), values.end()) / static_cast<double>(values.size());
  std::vector<double> distances(values.begin(), values.end());
  double largest = 0, squares = 0;
  for (double& one : distances) largest = std::max(largest, std::abs(one -= mean));
  if (largest == 0) return distances;
  for (double& one : distances) squares += (one / largest) * (one / largest);
  for (double& one : distances) one /= largest * std::sqrt(squares);
  return distances;
}

}  // namespace

double pearson(std::span<const double> targets, std::span<const double> predictions) {
  if (!varies(targets) || !varies(predictions)) return std::nan("");
  const std::vector<double> a = normalized(targets), b = normalized(predictions);
  return std::clamp(std::inner_product(a.begin(), a.end(), b.begin(), 0.0), -1.0, 1.0);
}

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

double spearman(std::span<const double> targets, std::span<const double> predictions) {
  if (!varies(targets) || !varies(predictions)) return std::nan("");
  return pearson(average_ranks(targets), average_ranks(predictions));
}

FLEET_METRIC(pearson) {
  def.help = "linear correlation of targets and predictions (Pearson), from -1 to 1";
  def.of_numbers = pearson;
}

FLEET_METRIC(spearman) {
  def.help = "correlation of the ranks of targets and predictions (Spearman), from -1 to 1";
  def.of_numbers = spearman;
}

}  // namespace fleet
