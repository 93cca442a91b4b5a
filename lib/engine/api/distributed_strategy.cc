#include "api/distributed_strategy.h"

#include "strategy/fields.h"
#include "strategy/strategy_file.h"

namespace fleet {

DistributedStrategy::DistributedStrategy() : proto_(std::make_unique<StrategyProto>()) {}
DistributedStrategy::DistributedStrategy(const DistributedStrategy& other)
    : proto_(std::make_unique<StrategyProto>(*other.proto_)) {}
DistributedStrategy& DistributedStrategy::operator=(const DistributedStrategy& other) {
  *proto_ = *other.proto_;
  return *this;
}
DistributedStrategy::~DistributedStrategy() = default;

DistributedStrategy& DistributedStrategy::set(const std::string& name, const Value& value) {
  return set_fields(name, Values{{"", value}});
}

DistributedStrategy& DistributedStrategy::set_fields(const std::string& name,
                                                     const Values& values) {
  ConfigTree tree;
  for (const auto& [below, value] : values) {
    const std::string path = "strategy." + name + (below.empty() ? "" : "." + below);
    tree.set(path, value.text(), "DistributedStrategy");
  }
  canonicalize_strategy_fields("strategy", &tree);
  Schema schema;
  schema.section("strategy", strategy_schema());
  const StrategyProto given = strategy_from(tree.validate(schema).section("strategy"));
  for (const std::string& path : tree.paths("strategy.")) {
    clear_field(path.substr(std::string("strategy.").size()), proto_.get());
  }
  proto_->MergeFrom(given);
  return *this;
}

DistributedStrategy& DistributedStrategy::set_build_strategy(const BuildStrategy& build) {
  return set_fields("build_strategy", build.values());
}

DistributedStrategy& DistributedStrategy::set_execution_strategy(
    const ExecutionStrategy& execution) {
  return set_fields("execution_strategy", execution.values());
}

void DistributedStrategy::load_from_prototxt(const std::string& path) {
  merge_strategy_file(path, proto_.get());
}

std::vector<std::string> DistributedStrategy::save_to_prototxt(const std::string& path,
                                                               const std::string& release) const {
  return save_strategy_file(*proto_, release, path);
}

}  // namespace fleet
