// A net whose gradients a test knows: the loss is the mean of weight * x, so that d(weight) is
// x / elements, times 1 / ranks where gradients are summed. Trained by a strategy on ranks that are
// threads.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "exec/communicator_set.h"
#include "exec/executor.h"
#include "strategy/strategy.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {

using Floats = std::vector<float>;

struct DotNet {
  std::string strategy;                               // text form
  std::string optimizer = R"({"name": "momentum"})";  // a job's section
  Floats start;                                       // the weight's
  // The values that the rank feeds in a step, and the learning rate.
  std::function<Floats(int rank, int64_t step)> x = {};
  std::function<float(int64_t step)> rate = [](int64_t) { return 0.125f; };
  // Called on each rank after each step.
  std::function<void(int rank, int64_t step, Executor&)> inspect = {};
};

// The weight of each rank after so many steps.
inline std::vector<Floats> train(const DotNet& net, int ranks, int64_t steps) {
  std::vector<Floats> weights(ranks);
  std::mutex mutex;
  run_ranks(on_one_host("inprocess", ranks), [&](Rank& rank) {
    const int self = rank.comm.rank();
    const Shape shape{static_cast<int64_t>(net.start.size())};
    Program program;
    const SectionId forward = program.add_section("forward", {});
    const VarId x = program.feed("x", DType::kFloat32, shape);
    const VarId learning_rate = program.feed("learning_rate", DType::kFloat32, {1});
    const VarId weight = program.parameter("weight", shape, {});
    const VarId loss = program.emit(forward, "mean",
                                    {program.emit(forward, "elementwise_mul", {weight, x})[0]})[0];
    ConfigTree tree = ConfigTree::from_json(net.optimizer, "test");
    Strategy strategy = make_strategy(
        net.strategy, {.rank = self, .ranks = ranks, .optimizer = *tree.peek("name")});
    strategy.append_backward(program, forward, loss);
    strategy.append_optimizer(learning_rate, tree.validate(optimizer_schema(*tree.peek("name"))));
    const CommunicatorSet set(program.groups(), &rank.comm);
    Executor executor(plan_program(std::move(program), strategy.keep()), rank.device, set.all());
    executor.initialize(1);
    executor.write(weight, net.start);
    for (int64_t step = 0; step < steps; ++step) {
      const Floats fed = net.x(self, step);
      const float rate = net.rate(step);
      StepInfo info{.step = step};
      HostStep host{.info = info, .learning_rate = rate, .read = [&](VarId id) {
                      return executor.values<float>(id);
                    }};
      strategy.before_step(host);
      executor.feed(x, fed);
      executor.feed(learning_rate, std::span(&rate, 1));
      executor.run(info);
      executor.synchronize();
      if (net.inspect) net.inspect(self, step, executor);
    }
    const Floats result = executor.values<float>(weight);
    const std::lock_guard lock(mutex);
    weights[self] = result;
  });
  return weights;
}

}  // namespace fleet
