#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// num_iteration_per_run: train.fetch_every of the job is rounded to a multiple of it (train/job.h).
// num_threads: operations run one by one. Running those of branches at the same time, each on a
// share of the cores, was 0.99 times as fast for googlenet (docs/performance/cpu_families.md).
FLEET_META_OPTIMIZER(execution) {
  def.help = "execution of steps: when losses are read";
  def.fields = {"execution_strategy.num_threads", "execution_strategy.num_iteration_per_run",
                "execution_strategy.use_thread_barrier",
                "build_strategy.enable_sequential_execution"};
  def.check = [](const StrategyProto& proto, const PassContext&) {
    const auto& execution = proto.execution_strategy();
    if (proto.build_strategy().enable_sequential_execution()) {
      spdlog::info(
          "strategy: enable_sequential_execution is true: operations run one by one, as they do "
          "without it");
    }
    if (execution.num_threads() > 1) {
      spdlog::info(
          "strategy: num_threads is {}, which has no effect: operations run one by one, each with "
          "all cores",
          execution.num_threads());
    }
    if (execution.num_iteration_per_run() > 1) {
      spdlog::info(
          "strategy: num_iteration_per_run is {}: the host reads a loss after a multiple of "
          "this number of steps (train.fetch_every); parameters are updated in each step",
          execution.num_iteration_per_run());
    }
    if (execution.use_thread_barrier()) {
      spdlog::info(
          "strategy: use_thread_barrier is not configurable: a step always begins when all streams "
          "of the one before have ended");
    }
  };
  def.when = "num_iteration_per_run: steps so short that waiting for the loss is noticeable";
  def.cost = "num_iteration_per_run: losses are reported later";
}

}  // namespace fleet
