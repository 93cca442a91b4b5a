#include "train/averaged_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "base/error.h"
#include "train/job_task.h"

namespace fleet {
namespace {

using Kind = PredictionLayout::Kind;

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "predict.average", next);
}

void check_average(const Job& job, const PredictionLayout& file, const std::string& average) {
  if (average == "none") return;
  if (image_of_columns(expected_columns(job)).rank() != 3) {
    refuse("only images have views, and the data of this job are others", "remove it");
  }
  if (file.decoder) {
    refuse("predictions of the task " + job.task + " are not averaged", "remove it");
  }
  if (average == "flip") return;
  if (job.data.integer("eval.resize") == 0 && job.data.number("eval.crop_pct") == 0) {
    refuse("five crops need images that are larger than data.image",
           "set data.eval.resize or data.eval.crop_pct, or use flip");
  }
  if (job.data.text("eval.crop_mode") == "border") {
    refuse("data.eval.crop_mode=border keeps all of an image: there is nothing to crop",
           "use flip, or another data.eval.crop_mode");
  }
}

void normalise(std::span<double> numbers) {
  double squares = 0;
  for (const double value : numbers) squares += value * value;
  const double scale = 1 / std::max(std::sqrt(squares), 1e-12);
  for (double& value : numbers) value *= scale;
}

}  // namespace

void rank_classes(std::span<const double> values, std::span<const double> probabilities,
                  std::span<double> to) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto value = [&](int64_t c) { return std::isnan(values[c]) ? -INFINITY : values[c]; };
  const auto top = static_cast<ptrdiff_t>(to.size() / 2);
  std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](int64_t a, int64_t b) {
    return value(a) != value(b) ? value(a) > value(b) : a < b;
  });
  for (ptrdiff_t k = 0; k < top; ++k) {
    to[2 * k] = static_cast<double>(order[k]);
    to[2 * k + 1] = probabilities[static_cast<size_t>(order[k])];
  }
}

AveragedRows::AveragedRows(const Job& job, const PredictionLayout& file)
    : views_(data::image_views(job.settings.text("predict.average"))),
      normalizes_(job.settings.boolean("predict.normalize")),
      file_(file),
      rows_(file) {
  check_average(job, file, job.settings.text("predict.average"));
  if (views_.size() < 2 || file.kind != Kind::kClasses) return;
  rows_.kind = Kind::kScores;
  rows_.numbers = classes_of(job);
}

std::vector<double> AveragedRows::join(const std::vector<std::vector<double>>& rows) const {
  std::vector<double> mean = rows.at(0);
  for (size_t r = 1; r < rows.size(); ++r) {
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += rows[r][i];
  }
  for (double& value : mean) value /= static_cast<double>(rows.size());
  if (file_.kind == Kind::kEmbedding && normalizes_) normalise(mean);
  if (file_.kind == rows_.kind) return mean;
  std::vector<double> ranked(static_cast<size_t>(file_.numbers));
  rank_classes(mean, mean, ranked);
  return ranked;
}

}  // namespace fleet
