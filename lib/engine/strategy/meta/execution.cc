#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// num_iteration_per_run: train.fetch_every of the job is rounded to a multiple of it (train/job.h).
// num_threads: 0 means "automatic" in Paddle, whose setters write it.
FLEET_META_OPTIMIZER(execution) {
  def.help = "execution of steps by the host";
  def.fields = {"execution_strategy.num_threads", "execution_strategy.num_iteration_per_run"};
  def.create = [](const StrategyProto& proto,
                  const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    const auto& execution = proto.execution_strategy();
    if (execution.num_threads() > 1) {
      spdlog::info(
          "strategy: num_threads is {}, which has no effect yet: one thread issues the operations "
          "in "
          "the program's order; OMP_NUM_THREADS is the number of threads that compute each",
          execution.num_threads());
    }
    if (execution.num_iteration_per_run() > 1) {
      spdlog::info(
          "strategy: num_iteration_per_run is {}: the host reads a loss after a multiple of "
          "this number of steps (train.fetch_every); parameters are updated in each step",
          execution.num_iteration_per_run());
    }
    return nullptr;
  };
  def.field_help = {
      {"execution_strategy.num_threads",
       "threads that issue operations, 0: automatic; no effect yet; a log line reports it from 2 "
       "on"},
      {"execution_strategy.num_iteration_per_run",
       "the host reads a loss after a multiple of this number of steps: train.fetch_every is "
       "rounded "
       "up to it"}};
  def.when = "with steps so short that waiting for the loss is noticeable";
  def.cost = "losses are reported later";
}

}  // namespace fleet
