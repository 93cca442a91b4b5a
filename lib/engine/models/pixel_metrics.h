// Collects the confusion matrix of the pixels of an evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/class_counts.h"

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
// "mIoU". Not thread-safe.
class PixelMetrics : public ClassCounts {
 public:
  // with_classes: also reports each class, and the confusion matrix.
  PixelMetrics(int64_t classes, bool with_classes)
      : ClassCounts(classes), with_classes_(with_classes) {}
  std::vector<std::string> outputs() const override { return {"pixel_logits"}; }
  void add(const Rows& rows) override;
  std::map<std::string, double> metrics() const override { return {{"mIoU", mean_iou(pairs())}}; }
  // "class_pixels", "class_accuracy" and "class_iou", one value per class.
  Fields fields() const override;
  std::string csv(const std::vector<std::string>& names) const override {
    return with_classes_ ? ClassCounts::csv(names) : "";
  }

 private:
  const bool with_classes_;
  std::vector<uint8_t> predicted_;  // one sample's
};

}  // namespace fleet
