// Collects the confusion matrix of the pixels of an evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/class_counts.h"
#include "models/class_report.h"

namespace fleet {

constexpr int64_t kUnlabelledPixel = 255;  // in a column "mask"

// By class: hits / (pixels of the class + predictions of it - hits), where only labelled pixels
// count; NaN for a class that is neither true nor predicted.
std::vector<double> intersections_over_unions(const ClassPairs& pairs);
// The mean over the classes that have one, as torchmetrics' MeanIoU; NaN without any.
double mean_iou(const ClassPairs& pairs);

// The class of the largest logit for each pixel: logits of a sample, [classes, pixels]. Among equal
// ones the first class wins; a logit that is not a number never does.
void classes_of_pixels(std::span<const float> logits, int64_t classes, std::span<uint8_t> to);

// Reads the output "pixel_logits", [N, classes, H, W], and the columns "mask", uint8 [N, H, W], and
// "weight", float32 [N]. Exact, whatever the batches and the number of ranks. Gives the metric
// "mIoU", and those that train.metrics names. Not thread-safe.
class PixelMetrics : public ClassCounts {
 public:
  // metrics: names in named_metric_registry(), for MetricInput::kPixels. with_classes: also reports
  // each class, the confusion matrix and the worst samples.
  PixelMetrics(int64_t classes, std::vector<std::string> metrics, bool with_classes)
      : ClassCounts(classes), metrics_(std::move(metrics)), with_classes_(with_classes) {}
  std::vector<std::string> outputs() const override { return {"pixel_logits"}; }
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  // "class_pixels", "class_accuracy" and "class_iou", one value per class.
  Fields fields() const override;
  std::string csv(const std::vector<std::string>& names) const override {
    return with_classes_ ? ClassCounts::csv(names) : "";
  }
  std::vector<int64_t> class_support() const override { return samples(); }
  Few few() const override { return {kFewPixels, "pixels"}; }
  Json report() const override;
  // By the part of their labelled pixels that are wrong.
  std::vector<WorstSample> worst_samples() const override { return worst_.samples(); }

  static constexpr int64_t kFewPixels = 1000;

 private:
  void add_worst(std::span<const uint8_t> mask, int64_t width, int64_t sample);

  const std::vector<std::string> metrics_;
  const bool with_classes_;
  std::vector<uint8_t> predicted_;  // one sample's
  WorstSamples worst_;
};

}  // namespace fleet
