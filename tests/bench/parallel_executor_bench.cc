// Gain of execution_strategy.num_threads: training steps of a net with several computing streams
// and with one that has all cores, in turns.
//   scripts/bench.sh parallel_executor [NET BATCH IMAGE_SIZE [ROUNDS [STREAMS]]]
// Without arguments: googlenet, a net with branches, and two nets that have hardly any.
//
// Links: ops optim models passes strategy exec backend_cpu
// Libraries: OpenMP::OpenMP_CXX
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/device.h"
#include "base/log.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "tests/bench/times.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

struct Case {
  std::string model;
  int64_t batch, size;
  double asked;  // ratio of the time with one stream
};

class Trained {
 public:
  Trained(const Case& net, int streams, Device& device) {
    const ModelDef& def = model_registry().get(net.model);
    Program program;
    const Shape image{def.image[0], net.size, net.size};
    const Training training = build_training(
        program, {.model = net.model,
                  .model_settings = ConfigTree::from_json("{}", "bench").validate(def.schema),
                  .batch = net.batch,
                  .columns = image_columns(image)});
    Strategy rewrites = make_strategy("");
    rewrites.append_backward(program, training.forward, training.loss);
    rewrites.append_optimizer(training.feed("learning_rate"),
                              ConfigTree::from_json(R"({"name": "momentum"})", "bench")
                                  .validate(optimizer_schema("momentum")));
    Plan plan =
        plan_program(std::move(program), {training.loss},
                     {.initial_layouts = {}, .device = &device, .compute_streams = streams});
    executor = std::make_unique<Executor>(std::move(plan), device, nullptr);
    executor->initialize(1);
    std::vector<float> pixels(net.batch * image.elements());
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    }
    executor->feed(training.feed("image"), pixels);
    executor->feed(training.feed("label"), std::vector<int64_t>(net.batch, 1));
    executor->feed(training.feed("weight"), std::vector<float>(net.batch, 1));
    executor->feed(training.feed("learning_rate"), std::vector<float>{1e-4f});
    executor->synchronize();
  }

  // Milliseconds of a step.
  double turn(int steps) {
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) executor->run({.step = step});
    executor->synchronize();
    return ms_since(begin) / steps;
  }

  std::unique_ptr<Executor> executor;
};

void compare(const Case& net, int rounds, int streams) {
  cpu::CpuDevice device;
  Trained one(net, 1, device), several(net, streams, device);
  one.turn(1);
  several.turn(1);
  const int steps = std::max(1, static_cast<int>(100 / one.turn(1)));
  std::vector<double> one_ms, several_ms, ratios;
  for (int round = 0; round < rounds; ++round) {
    const bool first = round % 2 == 0;
    double before = 0, after = 0;
    (first ? before : after) = (first ? one : several).turn(steps);
    (first ? after : before) = (first ? several : one).turn(steps);
    one_ms.push_back(before);
    several_ms.push_back(after);
    ratios.push_back(before / after);
  }
  const double ratio = median(ratios);
  const Plan& plan = several.executor->plan();
  std::printf(
      "parallel_executor: %s, batch %lld of %lld^2: ratio %.3f (%.2f ms a step with one stream of "
      "%d threads, %.2f ms with up to %d; median of %d turns; asked for >= %.2f: %s)\n",
      net.model.c_str(), static_cast<long long>(net.batch), static_cast<long long>(net.size), ratio,
      median(one_ms), device.cores(), median(several_ms), streams, rounds, net.asked,
      ratio >= net.asked ? "met" : "MISSED");
  std::printf("  %s\n", plan.compute_streams.size() > 1 ? plan.parallel_text().c_str()
                                                        : "no operations run at the same time");
  std::fflush(stdout);
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::set_up_logging("ERROR", "bench");
  const int rounds = argc > 4 ? std::stoi(argv[4]) : 40;
  const int streams = argc > 5 ? std::stoi(argv[5]) : omp_get_max_threads();
  if (argc > 3) {
    fleet::compare({argv[1], std::stol(argv[2]), std::stol(argv[3]), 1.0}, rounds, streams);
    return 0;
  }
  fleet::compare({"googlenet", 2, 64, 1.2}, rounds, streams);
  fleet::compare({"lenet", 64, 28, 0.97}, rounds, streams);
  fleet::compare({"resnet50", 4, 224, 0.97}, rounds / 2, streams);
  return 0;
}
