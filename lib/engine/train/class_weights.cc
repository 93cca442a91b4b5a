#include "train/class_weights.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/pipeline.h"
#include "train/job_task.h"

namespace fleet {
namespace {

constexpr char kKey[] = "train.class_weights";

std::vector<double> balanced(const Job& job, const data::Source& train) {
  std::vector<int64_t> counts = data::samples_by_class(train);
  const int64_t ignored = ignored_label(job);
  if (ignored >= 0 && ignored < static_cast<int64_t>(counts.size())) counts[ignored] = 0;
  double samples = 0, classes = 0;
  for (const int64_t count : counts) {
    samples += static_cast<double>(count);
    classes += count > 0 ? 1 : 0;
  }
  std::vector<double> weights;
  for (const int64_t count : counts) {
    weights.push_back(count > 0 ? samples / (classes * static_cast<double>(count)) : 0);
  }
  weights.resize(static_cast<size_t>(classes_of(job)));
  return weights;
}

void check_weights(const std::vector<double>& weights, int64_t classes) {
  if (static_cast<int64_t>(weights.size()) != classes) {
    throw Error(ErrorCode::kUsage,
                std::to_string(weights.size()) + " weights, and the model has " +
                    std::to_string(classes) + " classes",
                kKey, "give one for each class");
  }
  constexpr double kMost = std::numeric_limits<float>::max();
  const bool good = std::all_of(weights.begin(), weights.end(),
                                [](double weight) { return weight >= 0 && weight <= kMost; });
  const bool some = std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0; });
  if (!good || !some) {
    throw Error(ErrorCode::kUsage,
                good ? "all weights are 0" : "a weight is below 0 or not finite in float32", kKey,
                "give numbers of 0 or more");
  }
}

// "[0.3, 1, 8]" or "0.3,1,8".
bool is_list_of_numbers(const std::string& text) {
  if (text.front() == '[') {
    const auto list = Json::try_parse(text);
    return list && list->is_array() &&
           std::ranges::all_of(*list, [](const Json& one) { return one.is_number(); });
  }
  return std::ranges::all_of(split(text, ','), [](const std::string& part) {
    double number = 0;
    return parse_double(part, &number);
  });
}

}  // namespace

void expand_class_weights(ConfigTree* tree) {
  const auto given = tree->peek(kKey);
  if (!given) return;
  const bool list = !given->empty() && (given->front() == '[' || given->find(',') != given->npos);
  // Here, because later messages name the keys of the section.
  if (list ? !is_list_of_numbers(*given) : !given->empty() && *given != "balanced") {
    throw Error(ErrorCode::kUsage, "'" + std::string(kKey) + "' cannot be " + *given,
                tree->origin(kKey), "write balanced, or a list with a number for each class");
  }
  tree->rename(kKey, std::string(kKey) + (list ? ".values" : ".rule"));
}

bool weighs_classes(const Job& job) {
  if (!job.train.has("class_weights.rule")) return false;  // the task has no classes to weigh
  return !job.train.text("class_weights.rule").empty() ||
         !job.train.numbers("class_weights.values").empty();
}

void check_class_weights(const Job& job) {
  if (!weighs_classes(job)) return;
  const std::vector<double> weights = job.train.numbers("class_weights.values");
  if (job.train.text("class_weights.rule").empty()) {
    return check_weights(weights, classes_of(job));
  }
  if (weights.empty()) return;
  throw Error(ErrorCode::kUsage, "both a rule and a list are given", kKey, "give only one of them");
}

std::vector<float> class_weights(const Job& job, const data::Source& train) {
  check_class_weights(job);
  std::vector<double> weights = job.train.numbers("class_weights.values");
  if (!job.train.text("class_weights.rule").empty()) weights = balanced(job, train);
  check_weights(weights, classes_of(job));
  return {weights.begin(), weights.end()};
}

}  // namespace fleet
