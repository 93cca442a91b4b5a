// Optimizers for programs, and fleet.distributed_optimizer().
#pragma once

#include <string>

#include "api/distributed_strategy.h"
#include "api/model.h"
#include "api/value.h"

namespace fleet {

// An update rule, a learning rate and their settings, as in the sections "optimizer" and
// "learning_rate" of a job file. A value; not thread-safe.
class Optimizer {
 public:
  // name: a rule in lib/engine/optim. keys: its settings, {"weight_decay", 1e-4}. minimize() checks
  // names and values.
  Optimizer(const std::string& name, double learning_rate, const Values& keys = {});
  // A schedule of lib/engine/optim instead of the constant rate: schedule("cosine", {{"base",
  // 0.1}}, 90).
  Optimizer& schedule(const std::string& name, const Values& keys, int64_t epochs);

  const Values& keys() const { return keys_; }  // full names: "optimizer.name"

 private:
  Values keys_;
};

struct Sgd : Optimizer {
  explicit Sgd(double learning_rate, const Values& keys = {})
      : Optimizer("sgd", learning_rate, keys) {}
};
struct Momentum : Optimizer {
  Momentum(double learning_rate, double momentum, const Values& keys = {});
};
struct Adam : Optimizer {
  explicit Adam(double learning_rate, const Values& keys = {})
      : Optimizer("adam", learning_rate, keys) {}
};

class DistributedOptimizer {
 public:
  DistributedOptimizer(Optimizer optimizer, const DistributedStrategy& strategy)
      : optimizer_(std::move(optimizer)), strategy_(strategy) {}
  // Trains the loss's model with this optimizer and strategy. Checks their settings: kUsage naming
  // what is wrong. The ProgramExecutor later appends backward pass, collectives and updates. kUsage
  // if the model has no data yet, or was minimized before.
  void minimize(const Loss& loss) const;

 private:
  const Optimizer optimizer_;
  const DistributedStrategy strategy_;
};

DistributedOptimizer distributed_optimizer(const Optimizer& optimizer,
                                           const DistributedStrategy& strategy = {});

}  // namespace fleet
