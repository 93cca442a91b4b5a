#include "viewing/compare/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fleet {
namespace {

constexpr const char* kNames[] = {"train.seed", "train.name", "train.output"};

bool names_a_run(const std::string& key) {
  return std::ranges::any_of(kNames, [&](const char* name) { return key == name; });
}

// The keys that do not have the same value in all runs.
std::vector<std::string> differing_keys(const std::vector<RunSummary>& runs) {
  std::map<std::string, std::pair<const std::string*, size_t>> seen;  // first value, runs with it
  for (const RunSummary& run : runs) {
    for (const auto& [key, setting] : run.settings) {
      if (names_a_run(key)) continue;
      auto& [value, count] = seen.try_emplace(key, &setting.value, 0).first->second;
      if (*value == setting.value) ++count;
    }
  }
  std::vector<std::string> keys;
  for (const auto& [key, of] : seen) {
    if (of.second != runs.size()) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> values_of(const RunSummary& run, const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  for (const std::string& key : keys) {
    const auto found = run.settings.find(key);
    values.push_back(found == run.settings.end() ? std::string() : found->second.value);
  }
  return values;
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  double sum = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++spread.count;
  }
  spread.mean = spread.count > 0 ? sum / spread.count : NAN;
  if (spread.count < 2) return spread;
  double squares = 0;
  for (const double value : values) {
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  }
  spread.deviation = std::sqrt(squares / (spread.count - 1));
  return spread;
}

Comparison compare_runs(std::vector<RunSummary> runs) {
  Comparison all;
  all.runs = std::move(runs);
  all.differing = differing_keys(all.runs);
  std::map<std::vector<std::string>, size_t> index;
  for (size_t k = 0; k < all.runs.size(); ++k) {
    std::vector<std::string> values = values_of(all.runs[k], all.differing);
    const auto [found, is_new] = index.emplace(values, all.groups.size());
    if (is_new) all.groups.push_back({.values = std::move(values)});
    all.groups[found->second].runs.push_back(k);
  }
  for (RunGroup& group : all.groups) {
    for (const RunValue& value : kRunValues) {
      std::vector<double> values;
      for (const size_t run : group.runs) values.push_back(all.runs[run].*value.of_run);
      group.*value.of_group = spread_of(values);
    }
  }
  return all;
}

}  // namespace fleet
