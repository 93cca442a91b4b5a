#include "api/optimizer.h"

#include "api/recipe.h"
#include "base/error.h"
#include "strategy/strategy_file.h"
#include "train/job.h"

namespace fleet {

Optimizer::Optimizer(const std::string& name, double learning_rate, const Values& keys) {
  keys_ = {{"optimizer.name", name}, {"learning_rate.base", learning_rate}};
  for (const auto& [key, value] : keys) keys_.emplace_back("optimizer." + key, value);
}

Optimizer& Optimizer::schedule(const std::string& name, const Values& keys, int64_t epochs) {
  std::erase_if(keys_, [](const auto& key) { return key.first.starts_with("learning_rate."); });
  keys_.emplace_back("learning_rate.name", name);
  for (const auto& [key, value] : keys) keys_.emplace_back("learning_rate." + key, value);
  keys_.emplace_back("train.epochs", epochs);
  return *this;
}

Momentum::Momentum(double learning_rate, double momentum, const Values& keys)
    : Optimizer("momentum", learning_rate, [&] {
        Values all = keys;
        all.emplace_back("momentum", momentum);
        return all;
      }()) {}

DistributedOptimizer distributed_optimizer(const Optimizer& optimizer,
                                           const DistributedStrategy& strategy) {
  return {optimizer, strategy};
}

void DistributedOptimizer::minimize(const Loss& loss) const {
  Recipe& recipe = *loss.recipe();
  if (recipe.minimized) {
    throw Error(ErrorCode::kUsage, "the model has an optimizer already", "minimize",
                "make another Model for another optimizer");
  }
  if (!recipe.has_data) {
    throw Error(ErrorCode::kUsage, "the model has no data, which define shapes and batch size",
                "minimize", "call train_loader() or own_data() first");
  }
  ConfigTree tree = recipe.tree;
  for (const auto& [key, value] : optimizer_.keys()) tree.set(key, value.text(), "optimizer");
  add_strategy_fields(strategy_.proto(), "strategy", "DistributedStrategy", &tree);
  make_job(tree);
  recipe.tree = std::move(tree);
  recipe.minimized = true;
}

}  // namespace fleet
