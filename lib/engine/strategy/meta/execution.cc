#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// num_iteration_per_run: train.fetch_every of the job is rounded to a multiple of it (train/job.h).
// num_threads: Strategy::compute_streams(), which exec/assignment.h uses; 0 means
// "automatic" in Paddle, whose setters write it.
FLEET_META_OPTIMIZER(execution) {
  def.help = "execution of steps: concurrent operations, and when losses are read";
  def.fields = {"execution_strategy.num_threads", "execution_strategy.num_iteration_per_run",
                "execution_strategy.use_thread_barrier",
                "build_strategy.enable_sequential_execution"};
  def.check = [](const StrategyProto& proto, const PassContext&) {
    const auto& execution = proto.execution_strategy();
    if (proto.build_strategy().enable_sequential_execution()) {
      spdlog::info(
          "strategy: enable_sequential_execution is true: operations run one by one, whatever "
          "num_threads says (num_threads is {})",
          execution.num_threads());
    } else if (execution.num_threads() > 1) {
      spdlog::info(
          "strategy: num_threads is {}: operations of branches compute on up to this number of "
          "streams where that is faster",
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
  def.when =
      "num_threads: networks with branches of small operations (GoogLeNet); num_iteration_per_run: "
      "steps so short that waiting for the loss is noticeable";
  def.cost =
      "num_threads: at most a tenth more memory (print_plan shows it); sums may be rounded "
      "differently than with one stream. num_iteration_per_run: losses are reported later";
}

}  // namespace fleet
