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
  def.create = [](const StrategyProto& proto,
                  const PassContext&) -> std::unique_ptr<MetaOptimizer> {
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
          "of "
          "the one before have ended");
    }
    return nullptr;
  };
  def.field_help = {
      {"execution_strategy.num_threads",
       "operations of independent branches run concurrently on up to this number of streams, each "
       "with its share of the cores, where the Plan estimates that this is faster; 0: up to 4"},
      {"execution_strategy.num_iteration_per_run",
       "the host reads losses only after multiples of this number of steps: train.fetch_every is "
       "rounded up to a multiple"},
      {"execution_strategy.use_thread_barrier",
       "not configurable: a step begins when all streams of the previous step have ended"},
      {"build_strategy.enable_sequential_execution",
       "operations run one by one in the program's order, regardless of num_threads; if false, "
       "they still do so with num_threads 1"}};
  def.when =
      "num_threads: networks with branches of small operations (GoogLeNet); num_iteration_per_run: "
      "steps so short that waiting for the loss is noticeable";
  def.cost =
      "num_threads: at most a tenth more memory (print_plan shows it); sums may be rounded "
      "differently than with one stream. num_iteration_per_run: losses are reported later";
}

}  // namespace fleet
