#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr const char* kAlwaysSo =
    "operations run in the program's order, the updates behind the whole backward pass; results "
    "take their inputs' memory wherever that is safe; memory and schedules are planned once, "
    "before the first step, and a GPU's step is launched as one graph (train.cuda_graph)";

}  // namespace

// Whatever these say, true or false: kAlwaysSo.
FLEET_META_OPTIMIZER(always_so) {
  def.help = "properties that every Program here has; the fields cannot change them";
  def.fields = {"build_strategy.enable_sequential_execution",
                "build_strategy.enable_inplace",
                "build_strategy.enable_backward_optimizer_op_deps",
                "build_strategy.cache_runtime_context",
                "build_strategy.enable_addto",
                "build_strategy.fix_op_run_order",
                "build_strategy.allow_cuda_graph_capture",
                "execution_strategy.num_iteration_per_drop_scope",
                "execution_strategy.use_thread_barrier"};
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const std::vector<std::string> given = given_fields(proto, fields);
    if (!given.empty()) {
      spdlog::info("strategy: {}: always so, whatever is set: {}", join(given, ", "), kAlwaysSo);
    }
    return nullptr;
  };
  def.field_help = {
      {"build_strategy.enable_sequential_execution",
       "always so: operations run in the program's order"},
      {"build_strategy.enable_inplace",
       "always so: results take their inputs' memory wherever that is safe"},
      {"build_strategy.enable_backward_optimizer_op_deps",
       "always so: updates come behind the whole backward pass"},
      {"build_strategy.cache_runtime_context",
       "always so: schedules are made once, before the first step"},
      {"build_strategy.enable_addto", "always so: sums of gradients take an addend's memory"},
      {"build_strategy.fix_op_run_order", "always so: the order is the Plan's"},
      {"build_strategy.allow_cuda_graph_capture",
       "always so: a GPU's step is launched as one graph (train.cuda_graph)"},
      {"execution_strategy.num_iteration_per_drop_scope",
       "without effect: memory is planned once, there are no scopes to drop"},
      {"execution_strategy.use_thread_barrier",
       "without effect: one thread issues the operations"}};
  def.when = "never: scripts set them, and a line names those that were given";
  def.cost = "nothing";
}

}  // namespace fleet
