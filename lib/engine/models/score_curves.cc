#include "models/score_curves.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fleet {
namespace {

constexpr int64_t kBlockScores = 1 << 20;  // 4 MiB
// Positive samples of all ranks whose scores are exchanged at once, unless one class has more.
constexpr double kExchangedScores = 1 << 19;

}  // namespace

double area_under_roc(const ScoreCurve& curve) {
  double pairs = 0;  // with the positive sample above; whole and half numbers
  for (const ScoreCurve::Point& point : curve.points) {
    const double below = curve.negatives - point.negatives_above - point.negatives;
    pairs += point.positives * (below + point.negatives / 2);
  }
  const double all = curve.positives * curve.negatives;
  return all > 0 ? pairs / all : std::nan("");
}

double average_precision(const ScoreCurve& curve) {
  double sum = 0, hits = 0;
  for (const ScoreCurve::Point& point : curve.points) {
    hits += point.positives;
    sum += point.positives * hits / (hits + point.negatives_above + point.negatives);
  }
  return curve.positives > 0 ? sum / curve.positives : std::nan("");
}

// Classes [begin, end), and where the scores of all samples lie between those of positive ones.
struct ScoreTable::Classes {
  int64_t begin = 0, end = 0;
  std::vector<size_t> first;  // of each class in `scores`; one more at the end
  std::vector<float> scores;  // of positive samples: distinct, ascending
  std::vector<double> positives;
  // By class: samples below the first score, at it, between it and the second one, ...
  std::vector<double> samples;
  // Of the class's counts in `samples`.
  size_t counts_begin(int64_t k) const { return 2 * first[k] + static_cast<size_t>(k); }
};

ScoreTable::ScoreTable(int64_t classes)
    : classes_(classes),
      rows_per_block_(std::max<int64_t>(kBlockScores / std::max<int64_t>(classes, 1), 1)),
      positives_(static_cast<size_t>(classes)) {}

std::span<float> ScoreTable::add_sample() {
  const int64_t row = samples_++ % rows_per_block_;
  if (row == 0) {
    blocks_.push_back(std::make_unique_for_overwrite<float[]>(rows_per_block_ * classes_));
  }
  return {blocks_.back().get() + row * classes_, static_cast<size_t>(classes_)};
}

void ScoreTable::add_positive(int64_t c) {
  const int64_t row = (samples_ - 1) % rows_per_block_;
  positives_[c].push_back(blocks_.back()[row * classes_ + c]);
}

// The scores of the positive samples of all ranks.
ScoreTable::Classes ScoreTable::thresholds_of(int64_t begin, int64_t end,
                                              RankExchange& ranks) const {
  std::vector<double> own;
  for (int64_t c = begin; c < end; ++c) own.push_back(static_cast<double>(positives_[c].size()));
  for (int64_t c = begin; c < end; ++c) {
    own.insert(own.end(), positives_[c].begin(), positives_[c].end());
  }
  const std::vector<std::vector<double>> all = ranks.gather(own);
  std::vector<size_t> read(all.size(), static_cast<size_t>(end - begin));
  Classes classes{.begin = begin, .end = end, .first = {0}};
  std::vector<float> scores;
  for (int64_t k = 0; k < end - begin; ++k) {
    scores.clear();
    for (size_t r = 0; r < all.size(); ++r) {
      const auto count = static_cast<size_t>(all[r][k]);
      for (size_t i = 0; i < count; ++i) scores.push_back(static_cast<float>(all[r][read[r]++]));
    }
    std::ranges::sort(scores);
    for (size_t i = 0; i < scores.size(); ++i) {
      if (i == 0 || scores[i] != scores[i - 1]) {
        classes.scores.push_back(scores[i]);
        classes.positives.push_back(0);
      }
      classes.positives.back() += 1;
    }
    classes.first.push_back(classes.scores.size());
  }
  return classes;
}

void ScoreTable::count(Classes* classes) const {
  const int64_t width = classes->end - classes->begin;
  std::vector<int64_t> counts(classes->counts_begin(width));
  for (int64_t row = 0; row < samples_; ++row) {
    const float* sample =
        blocks_[row / rows_per_block_].get() + (row % rows_per_block_) * classes_ + classes->begin;
    for (int64_t k = 0; k < width; ++k) {
      const float* begin = classes->scores.data() + classes->first[k];
      const float* end = classes->scores.data() + classes->first[k + 1];
      int64_t* of_class = counts.data() + classes->counts_begin(k);
      // Most samples are below all samples of the class.
      if (begin == end || sample[k] < *begin) {
        ++*of_class;
        continue;
      }
      const float* place = std::lower_bound(begin, end, sample[k]);
      ++of_class[2 * (place - begin) + (place != end && *place == sample[k] ? 1 : 0)];
    }
  }
  classes->samples.assign(counts.begin(), counts.end());
}

void ScoreTable::for_each_class(RankExchange& ranks, const Visit& visit) const {
  std::vector<double> positives;
  for (const auto& scores : positives_) positives.push_back(static_cast<double>(scores.size()));
  ranks.sum(positives);
  for (int64_t begin = 0, end = 0; begin < classes_; begin = end) {
    double exchanged = positives[end++];
    while (end < classes_ && exchanged + positives[end] <= kExchangedScores) {
      exchanged += positives[end++];
    }
    Classes classes = thresholds_of(begin, end, ranks);
    count(&classes);
    ranks.sum(classes.samples);
    for (int64_t k = 0; k < end - begin; ++k) {
      ScoreCurve curve;
      const double* samples = classes.samples.data() + classes.counts_begin(k);
      const size_t first = classes.first[k], points = classes.first[k + 1] - first;
      curve.points.resize(points);
      for (size_t p = points; p-- > 0;) {
        curve.negatives += samples[2 * p + 2];
        ScoreCurve::Point& point = curve.points[points - 1 - p];
        point = {.score = classes.scores[first + p],
                 .positives = classes.positives[first + p],
                 .negatives_above = curve.negatives,
                 .negatives = samples[2 * p + 1] - classes.positives[first + p]};
        curve.positives += point.positives;
        curve.negatives += point.negatives;
      }
      curve.negatives += samples[0];
      visit(begin + k, curve);
    }
  }
}

}  // namespace fleet
