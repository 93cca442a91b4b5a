// DistributedStrategy for programs, under Paddle's names; docs/reference/strategies.md lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/value.h"

namespace paddle::fleet {
class DistributedStrategy;
}

namespace fleet {

// Fields that are set together, like Paddle's objects of these names: set_build_strategy().
class StrategyPart {
 public:
  StrategyPart& set(const std::string& name, const Value& value) {
    values_.emplace_back(name, value);
    return *this;
  }
  const Values& values() const { return values_; }

 private:
  Values values_;
};
class BuildStrategy : public StrategyPart {};
class ExecutionStrategy : public StrategyPart {};

// A value: copies are independent. Not thread-safe.
class DistributedStrategy {
 public:
  DistributedStrategy();
  DistributedStrategy(const DistributedStrategy& other);
  DistributedStrategy& operator=(const DistributedStrategy& other);
  ~DistributedStrategy();

  // Takes any name that a job file takes: "amp", "amp_configs.incr_ratio", "fuse_bn_act_ops",
  // "_fuse_grad_size_in_TFLOPS". A list replaces the existing one. kUsage naming the nearest name,
  // or the allowed values.
  DistributedStrategy& set(const std::string& name, const Value& value);
  // Sets several fields below one name: set_fields("amp_configs", {{"init_loss_scaling", 128},
  // {"decr_ratio", 0.5}}).
  DistributedStrategy& set_fields(const std::string& name, const Values& values);
  DistributedStrategy& set_build_strategy(const BuildStrategy& build);
  DistributedStrategy& set_execution_strategy(const ExecutionStrategy& execution);

  // Merges a file over the current values: scalars are replaced, lists are appended to. kUsage with
  // file, line and column; kNotFound, kIo.
  void load_from_prototxt(const std::string& path);
  // Writes the current values in the form that Paddle's release reads: "2.0", "2.1", "2.6" or
  // "3.3". Returns the fields that are left out because that release has no name for them. kUsage
  // for another release, kIo.
  std::vector<std::string> save_to_prototxt(const std::string& path,
                                            const std::string& release = "2.6") const;

  const paddle::fleet::DistributedStrategy& proto() const { return *proto_; }

 private:
  std::unique_ptr<paddle::fleet::DistributedStrategy> proto_;
};

}  // namespace fleet
