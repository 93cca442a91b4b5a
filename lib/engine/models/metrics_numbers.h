// Correlations of targets and predictions, as scipy.stats defines them. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace fleet {

// pearsonr: the linear correlation, from -1 to 1. NaN for fewer than two samples, if either side is
// constant, or if a value is not finite.
double pearson(std::span<const double> targets, std::span<const double> predictions);
// spearmanr: the Pearson correlation of the ranks; equal values share the mean of their ranks. NaN
// in the same cases.
double spearman(std::span<const double> targets, std::span<const double> predictions);
// Ranks from 1 up, in the order of `values` (rankdata, method="average").
std::vector<double> average_ranks(std::span<const double> values);

}  // namespace fleet
