#include "models/pixel_metrics.h"

#include <algorithm>
#include <cmath>

#include "models/class_totals.h"

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
    classes_of_pixels(logits.subspan(i * sample, sample), classes(), predicted_);
    for (size_t p = 0; p < pixels; ++p) count_pair(masks[i * pixels + p], predicted_[p]);
  }
}

EvaluationCollector::Fields PixelMetrics::fields() const {
  if (!with_classes_) return {};
  return {.integers = {{"class_pixels", samples()}},
          .numbers = {{"class_accuracy", accuracies()},
                      {"class_iou", intersections_over_unions(pairs())}}};
}

}  // namespace fleet
