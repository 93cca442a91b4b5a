#include "base/log.h"
#include "base/text.h"
#include "strategy/fields.h"
#include "strategy/meta_optimizer.h"

namespace fleet {
namespace {

constexpr const char* kAlwaysSo =
    "the order of operations is the Plan's, the updates after the whole backward pass; results "
    "reuse their inputs' memory wherever that is safe; memory and schedules are planned once, "
    "before the first step, and a GPU's step is launched as one graph (train.cuda_graph)";

}  // namespace

// These fields have no effect, true or false: kAlwaysSo describes the fixed behaviour.
FLEET_META_OPTIMIZER(always_so) {
  def.help = "fixed properties of every Program; the fields do not change them";
  def.fields = {"build_strategy.enable_inplace",
                "build_strategy.enable_backward_optimizer_op_deps",
                "build_strategy.cache_runtime_context",
                "build_strategy.enable_addto",
                "build_strategy.fix_op_run_order",
                "build_strategy.allow_cuda_graph_capture",
                "execution_strategy.num_iteration_per_drop_scope"};
  def.create = [fields = def.fields](const StrategyProto& proto,
                                     const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const std::vector<std::string> given = given_fields(proto, fields);
    if (!given.empty()) {
      spdlog::info("strategy: {}: not configurable: {}", join(given, ", "), kAlwaysSo);
    }
    return nullptr;
  };
  def.field_help = {
      {"build_strategy.enable_inplace",
       "not configurable: results reuse their inputs' memory wherever that is safe"},
      {"build_strategy.enable_backward_optimizer_op_deps",
       "not configurable: updates run after the whole backward pass"},
      {"build_strategy.cache_runtime_context",
       "not configurable: schedules are made once, before the first step"},
      {"build_strategy.enable_addto",
       "not configurable: sums of gradients reuse an addend's memory"},
      {"build_strategy.fix_op_run_order", "not configurable: the Plan determines the order"},
      {"build_strategy.allow_cuda_graph_capture",
       "not configurable: a GPU's step is launched as one graph (train.cuda_graph)"},
      {"execution_strategy.num_iteration_per_drop_scope",
       "no effect: memory is planned once, so nothing has to be freed between steps"}};
  def.when =
      "never: the options exist for scripts that set them; a log line names those that are set";
  def.cost = "nothing";
}

}  // namespace fleet
