#include "models/entity_metrics.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace fleet {
namespace {

std::vector<EntityTag> tags_of(std::span<const std::string> names) {
  std::vector<EntityTag> tags;
  for (const std::string& name : names) tags.push_back(entity_tag(name));
  return tags;
}

struct TaggedPart {
  double text = 0, part = 0;
  std::span<const double> labels, predicted;
};

std::vector<TaggedPart> parts_of(const std::vector<double>& rows) {
  std::vector<TaggedPart> parts;
  for (size_t at = 0; at < rows.size();) {
    const auto count = static_cast<size_t>(rows[at + 2]);
    const std::span<const double> tags(rows.data() + at + 3, 2 * count);
    parts.push_back({rows[at], rows[at + 1], tags.first(count), tags.last(count)});
    at += 3 + 2 * count;
  }
  return parts;
}

}  // namespace

int64_t largest_logit(std::span<const float> logits) {
  const auto less = [](float a, float b) { return std::isnan(a) ? !std::isnan(b) : a < b; };
  return std::max_element(logits.begin(), logits.end(), less) - logits.begin();
}

void EntityMetrics::add(const Rows& rows) {
  const std::span<const float> logits = rows.output("token_logits");
  const auto labels = rows.column_as<int64_t>("token_labels"),
             texts = rows.column_as<int64_t>("text"), parts = rows.column_as<int64_t>("part");
  const auto weights = rows.column_as<float>("weight");
  if (rows.size == 0) return;
  const size_t length = labels.size() / rows.size, classes = logits.size() / labels.size();
  if (rows.class_names.size() != classes) {
    throw Error(ErrorCode::kUsage,
                "the metrics of entities need a tag for each of the " + std::to_string(classes) +
                    " classes, and the data name " + std::to_string(rows.class_names.size()),
                "data.class_names", "name all tags, or set model.num_classes to their number");
  }
  if (tags_.empty()) tags_ = tags_of(rows.class_names);
  for (int64_t n = 0; n < rows.size; ++n) {
    if (weights[n] == 0) continue;
    std::vector<double> own, predicted;
    for (size_t token = n * length; token < (n + 1) * length; ++token) {
      if (labels[token] < 0) continue;
      own.push_back(static_cast<double>(labels[token]));
      predicted.push_back(
          static_cast<double>(largest_logit(logits.subspan(token * classes, classes))));
    }
    rows_.insert(rows_.end(), {static_cast<double>(texts[n]), static_cast<double>(parts[n]),
                               static_cast<double>(own.size())});
    rows_.insert(rows_.end(), own.begin(), own.end());
    rows_.insert(rows_.end(), predicted.begin(), predicted.end());
  }
}

void EntityMetrics::finish(RankExchange& ranks) {
  const std::vector<std::vector<double>> all = ranks.gather(rows_);
  std::vector<TaggedPart> parts;
  for (const std::vector<double>& rank : all) {
    for (const TaggedPart& part : parts_of(rank)) parts.push_back(part);
  }
  std::ranges::sort(parts, {},
                    [](const TaggedPart& one) { return std::tuple(one.text, one.part); });
  for (size_t begin = 0, end = 0; begin < parts.size(); begin = end) {
    std::vector<EntityTag> own, predicted;
    for (; end < parts.size() && parts[end].text == parts[begin].text; ++end) {
      for (const double label : parts[end].labels) own.push_back(tags_[static_cast<size_t>(label)]);
      for (const double one : parts[end].predicted) {
        predicted.push_back(tags_[static_cast<size_t>(one)]);
      }
    }
    add_entities(own, predicted, &counts_);
  }
}

std::map<std::string, double> EntityMetrics::metrics() const {
  std::map<std::string, double> values;
  for (const std::string& name : metrics_) {
    values[name] = named_metric_registry().get(name).of_entities(counts_);
  }
  return values;
}

std::unique_ptr<EvaluationCollector> entity_metrics(const TaskContext& context) {
  std::vector<std::string> metrics = registered_metrics(context);
  if (metrics.empty()) return nullptr;
  return std::make_unique<EntityMetrics>(std::move(metrics));
}

}  // namespace fleet
