// The collector of metrics of tagged entities, for MetricInput::kEntities.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/metrics_entities.h"

namespace fleet {

// The class that a row of logits predicts. One that is not a number is the lowest; of equal ones
// the first wins.
int64_t largest_logit(std::span<const float> logits);

// Reads the output "token_logits", [N, S, classes], and the columns "token_labels", int64 [N, S]
// (-100: a token without a tag), "text" and "part", int64 [N] (the parts of a long text are joined
// again), and "weight": skips rows of weight 0. The tags are the names of the classes. Keeps all
// tags: exact, whatever the batches and the number of ranks. Not thread-safe.
class EntityMetrics : public EvaluationCollector {
 public:
  explicit EntityMetrics(std::vector<std::string> metrics) : metrics_(std::move(metrics)) {}

  std::vector<std::string> outputs() const override { return {"token_logits"}; }
  // kUsage if a class has no name.
  void add(const Rows& rows) override;
  void finish(RankExchange& ranks) override;
  std::map<std::string, double> metrics() const override;
  const EntityCounts& counts() const { return counts_; }

 private:
  const std::vector<std::string> metrics_;
  std::vector<EntityTag> tags_;  // by class
  std::vector<double> rows_;     // text, part, n, n labels, n predicted classes; ...
  EntityCounts counts_;
};

// Null if train.metrics names none.
std::unique_ptr<EvaluationCollector> entity_metrics(const TaskContext& context);

}  // namespace fleet
