// Clicks with a known truth: rows are drawn from a logistic model, so that the best AUC that a
// trained model can reach on them is known.
//
// The ids of a slot follow Zipf's law. z = bias + sum of w[slot, id] (+ sum over pairs of slots of
// <v_i, v_j>) (+ sum of u[d] * dense[d]); the label is 1 with probability 1 / (1 + exp(-z)).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/alias_table.h"
#include "data/click_columns.h"

namespace fleet::data {

struct ClickTruthOptions {
  int64_t slots = 8;
  int64_t slot_ids = 1000;   // different ids of a slot
  int64_t longest = 1;       // most ids of a sample in a slot; a row has 1 to this number
  int64_t dense = 0;         // numbers of a row, each from N(0, 1)
  double exponent = 1;       // of Zipf's law: P(id r) is in proportion to 1 / (r + 1)^exponent
  double deviation = 1;      // standard deviation: z over the rows
  double rate = 0.25;        // mean of the labels
  bool interaction = false;  // half of z's variance comes from pairs of slots
  uint64_t seed = 1;
  int64_t ids = 1'000'001;  // the id space
};

// Immutable: thread-safe. Samples are a function of (seed, part, sample) alone.
class ClickTruth {
 public:
  // slots * slot_ids at most 100 million; ids at least that, or 0.
  explicit ClickTruth(const ClickTruthOptions& options);
  // part: independent rows of the same truth, such as 1 for training and 0 for tests. Returns the
  // probability of a click.
  double fill(int64_t part, int64_t sample, const ClickRow& row) const;
  double bias() const { return bias_; }
  ClickShape shape() const;

 private:
  void make_weights();
  void make_factors();
  void find_bias();
  // z without the bias.
  double draw(uint64_t key, const ClickRow& row) const;

  const ClickTruthOptions options_;
  const IdSpace space_;
  const std::vector<double> probability_;  // by id of a slot
  const AliasTable ids_;
  std::vector<float> weights_;  // w, by slot and id
  std::vector<float> factors_;  // v, by slot and id; empty without interaction
  std::vector<float> dense_weights_;
  double bias_ = 0;
};

// The expected AUC of ranking rows by their true probabilities: no model ranks better on average.
// Pairs of equal probability count as half. 0.5 if all rows are clicks, or none is.
double best_possible_auc(std::span<const double> probabilities);
// The expected logarithmic loss of the true probabilities, the lowest possible.
double best_possible_log_loss(std::span<const double> probabilities);

}  // namespace fleet::data
