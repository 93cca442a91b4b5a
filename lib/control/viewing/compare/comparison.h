// Groups of runs that differ only in their seed, and their means.
#pragma once

#include <string>
#include <vector>

#include "viewing/compare/run_summary.h"

namespace fleet {

// Mean and spread of the values that are finite.
struct Spread {
  double mean = 0, deviation = 0;  // NaN without a value; the sample's deviation, 0 of one value
  int count = 0;
};
Spread spread_of(const std::vector<double>& values);

struct RunGroup {
  std::vector<size_t> runs;         // indices, in the given order
  std::vector<std::string> values;  // of Comparison::differing, as JSON; "": not set
  Spread loss, acc1, best_acc1, steps, speed, seconds, target_seconds, target_steps;
};

struct Comparison {
  std::vector<RunSummary> runs;
  std::vector<std::string> differing;  // keys whose values differ between groups, sorted
  std::vector<RunGroup> groups;        // in the order of their first runs
};

// train.seed, train.name and train.output, which name a run, make no difference.
Comparison compare_runs(std::vector<RunSummary> runs);

struct ComparisonOptions {
  std::string target;  // as given; "": none
  size_t width = 80;   // columns
};
std::string comparison_text(const Comparison& all, const ComparisonOptions& options);
std::string comparison_json(const Comparison& all, const ComparisonOptions& options);

}  // namespace fleet
