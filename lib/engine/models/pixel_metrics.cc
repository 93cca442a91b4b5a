#include "models/pixel_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "models/class_totals.h"
#include "models/named_metrics.h"

namespace fleet {

std::vector<double> intersections_over_unions(const ClassPairs& pairs) {
  const ClassTotals totals = totals_of(pairs);
  std::vector<double> all;
  for (size_t c = 0; c < totals.own.size(); ++c) {
    const double together = totals.own[c] + totals.predicted[c] - totals.hits[c];
    all.push_back(together > 0 ? totals.hits[c] / together : std::nan(""));
  }
  return all;
}

double mean_iou(const ClassPairs& pairs) {
  double sum = 0, count = 0;
  for (const double one : intersections_over_unions(pairs)) {
    if (std::isnan(one)) continue;
    sum += one;
    count += 1;
  }
  return count > 0 ? sum / count : std::nan("");
}

void classes_of_pixels(std::span<const float> logits, int64_t classes, std::span<uint8_t> to) {
  const auto pixels = static_cast<int64_t>(to.size());
  constexpr int64_t kPart = 256;
  float largest[kPart];
  for (int64_t begin = 0; begin < pixels; begin += kPart) {
    const int64_t count = std::min(kPart, pixels - begin);
    uint8_t* own = to.data() + begin;
    std::fill_n(largest, count, -INFINITY);
    std::fill_n(own, count, uint8_t{0});
    for (int64_t c = 0; c < classes; ++c) {
      const float* row = logits.data() + c * pixels + begin;
      for (int64_t i = 0; i < count; ++i) {
        const bool larger = row[i] > largest[i];
        largest[i] = larger ? row[i] : largest[i];
        own[i] = larger ? static_cast<uint8_t>(c) : own[i];
      }
    }
  }
}

void PixelMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("pixel_logits");
  const auto masks = rows.column_as<uint8_t>("mask");
  const auto weights = rows.column_as<float>("weight");
  const size_t pixels = masks.size() / static_cast<size_t>(rows.size);
  const size_t sample = pixels * static_cast<size_t>(classes());
  predicted_.resize(pixels);
  for (size_t i = 0; i < static_cast<size_t>(rows.size); ++i) {
    if (weights[i] == 0) continue;
    const auto mask = masks.subspan(i * pixels, pixels);
    classes_of_pixels(logits.subspan(i * sample, sample), classes(), predicted_);
    for (size_t p = 0; p < pixels; ++p) count_pair(mask[p], predicted_[p]);
    if (!with_classes_) continue;
    add_worst(mask, rows.width > 0 ? rows.width : static_cast<int64_t>(pixels),
              rows.samples.empty() ? -1 : rows.samples[i]);
  }
}

// The classes with the most pixels, the most first.
static std::vector<int64_t> most_frequent(const std::vector<int64_t>& counts) {
  std::vector<int64_t> classes;
  for (size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] > 0) classes.push_back(static_cast<int64_t>(c));
  }
  std::ranges::stable_sort(classes, std::ranges::greater(), [&](int64_t c) { return counts[c]; });
  return classes;
}

void PixelMetrics::add_worst(std::span<const uint8_t> mask, int64_t width, int64_t sample) {
  const auto is_wrong = [&](size_t p) { return mask[p] < classes() && predicted_[p] != mask[p]; };
  std::vector<int64_t> missed(static_cast<size_t>(classes())), taken(missed.size());
  double labelled = 0, wrong = 0;
  for (size_t p = 0; p < mask.size(); ++p) {
    labelled += mask[p] < classes() ? 1 : 0;
    if (!is_wrong(p)) continue;
    ++missed[mask[p]];
    ++taken[predicted_[p]];
    wrong += 1;
  }
  if (wrong == 0 || !worst_.takes(wrong / labelled)) return;
  const int64_t height = static_cast<int64_t>(mask.size()) / width;
  PixelMarks marks{.height = static_cast<int>(std::min<int64_t>(height, PixelMarks::kMostSide)),
                   .width = static_cast<int>(std::min<int64_t>(width, PixelMarks::kMostSide)),
                   .marked = {}};
  for (int y = 0; y < marks.height; ++y) {
    for (int x = 0; x < marks.width; ++x) {
      // The pixel in the middle of the grid's cell.
      const int64_t row = (2 * y + 1) * height / (2 * marks.height);
      const int64_t column = (2 * x + 1) * width / (2 * marks.width);
      marks.marked.push_back(is_wrong(static_cast<size_t>(row * width + column)) ? 1 : 0);
    }
  }
  worst_.add({.loss = wrong / labelled,
              .sample = sample,
              .expected = most_frequent(missed),
              .predicted = most_frequent(taken),
              .probability = std::nan(""),
              .wrong = std::move(marks)});
}

void PixelMetrics::finish(RankExchange& ranks) {
  ClassCounts::finish(ranks);
  if (with_classes_) worst_.finish(ranks);
}

std::map<std::string, double> PixelMetrics::metrics() const {
  const ClassPairs all = pairs();
  std::map<std::string, double> values = {{"mIoU", mean_iou(all)}};
  for (const std::string& name : metrics_) {
    values[name] = named_metric_registry().get(name).of_classes(all);
  }
  return values;
}

EvaluationCollector::Fields PixelMetrics::fields() const {
  if (!with_classes_) return {};
  return {.integers = {{"class_pixels", samples()}},
          .numbers = {{"class_accuracy", accuracies()},
                      {"class_iou", intersections_over_unions(pairs())}}};
}

Json PixelMetrics::report() const {
  if (!with_classes_) return nullptr;
  const ClassPairs all = pairs();
  const ClassTotals totals = totals_of(all);
  return class_report({.samples = std::accumulate(totals.own.begin(), totals.own.end(), 0.0),
                       .totals = totals,
                       .pairs = &all,
                       .iou = intersections_over_unions(all),
                       .few = kFewPixels});
}

FLEET_METRIC(weighted_iou) {
  def.help = "mean intersection over union of the classes, by their samples or pixels";
  def.of_classes = [](const ClassPairs& pairs) {
    const ClassTotals totals = totals_of(pairs);
    const std::vector<double> all = intersections_over_unions(pairs);
    double sum = 0, weights = 0;
    for (size_t c = 0; c < all.size(); ++c) {
      if (totals.own[c] > 0) sum += totals.own[c] * all[c];
      weights += totals.own[c];
    }
    return weights > 0 ? sum / weights : 0;
  };
}

}  // namespace fleet
