// A sample's prediction from the numbers of its views: test-time averaging (predict.average).
#pragma once

#include <span>
#include <vector>

#include "data/image_view.h"
#include "train/job.h"
#include "train/prediction_file.h"

namespace fleet {

// The likeliest classes, the first of equal ones, each followed by its probability. values: what
// ranks the classes; a NaN comes last.
void rank_classes(std::span<const double> values, std::span<const double> probabilities,
                  std::span<double> to);

class AveragedRows {
 public:
  // file: the layout of the job's predictions. kUsage if predict.average does not fit to it.
  AveragedRows(const Job& job, const PredictionLayout& file);

  // In the order of a sample's rows; one without averaging.
  const std::vector<data::ImageView>& views() const { return views_; }
  // The numbers of each row: with averaging, the probabilities of all classes instead of a few.
  const PredictionLayout& layout() const { return rows_; }
  // The numbers of a sample, in the file's layout, from those of its rows: the mean of
  // probabilities, numbers or embeddings. Embeddings then get length 1 with predict.normalize.
  std::vector<double> join(const std::vector<std::vector<double>>& rows) const;

 private:
  const std::vector<data::ImageView> views_;
  const bool normalizes_;
  const PredictionLayout file_;
  PredictionLayout rows_;
};

}  // namespace fleet
