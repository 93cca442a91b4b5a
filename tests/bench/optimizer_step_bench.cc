// The updates of a model's parameters by one rule, on one core: for scripts/bench.sh optimizers.
// Usage: bench_optimizer_step MODEL SETTINGS STEPS
// SETTINGS: an optimizer section in JSON. Prints "seconds S parameters N": the processor's, the
// median of the steps.
//
// Links: ops optim models passes exec backend_cpu
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "passes/pass.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

std::vector<Var> parameters_of(const std::string& model) {
  Program program;
  const ModelDef& def = model_registry().get(model);
  build_training(program,
                 {.model = model,
                  .model_settings = ConfigTree::from_json("{}", "bench").validate(def.schema),
                  .batch = 1,
                  .columns = image_columns(def.image)});
  std::vector<Var> parameters;
  for (const VarId id : program.parameters()) parameters.push_back(program.var(id));
  return parameters;
}

// As tests/bench/peers/optimizers_torch.py.
std::vector<float> values_of(int64_t count, size_t parameter, float size) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t hash = (i * 7919 + static_cast<int64_t>(parameter) * 104729 + i * i % 613) % 2017;
    values[static_cast<size_t>(i)] = size * (static_cast<float>(hash) / 1008 - 1);
  }
  return values;
}

void measure(const std::string& model, const std::string& json, int steps) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> parameters, gradients;
  for (const Var& var : parameters_of(model)) {
    parameters.push_back(program.parameter(var.name, var.shape, {}));
    gradients.push_back(program.feed(var.name + "@GRAD", DType::kFloat32, var.shape));
    program.set_gradient(parameters.back(), gradients.back());
  }
  const ConfigTree tree = ConfigTree::from_json(json, "bench");
  append_updates(program, section, parameters, rate,
                 tree.validate(optimizer_schema(*tree.peek("name"))));
  run_pass("fuse_all_optimizer_ops", program, {});
  HostDevice device;
  Executor executor(plan_program(std::move(program), {}), device, nullptr);
  executor.initialize(1);
  const float own_rate = 0.01f;
  executor.feed(rate, std::span(&own_rate, 1));
  std::vector<std::vector<float>> held;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t count = executor.argument(parameters[i]).shape.elements();
    executor.write(parameters[i], values_of(count, i, 0.1f));
    held.push_back(values_of(count, i + 1, 0.01f));
    executor.feed(gradients[i], held.back());
  }
  std::vector<double> seconds;
  for (int step = 0; step <= steps; ++step) {
    const double begin = processor_seconds();
    executor.run({.step = step});
    executor.synchronize();
    if (step > 0) seconds.push_back(processor_seconds() - begin);
  }
  std::printf("seconds %.6f parameters %zu\n", median(seconds), parameters.size());
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_optimizer_step MODEL SETTINGS STEPS\n");
    return 2;
  }
  fleet::set_up_logging("WARNING", "bench");
  fleet::measure(argv[1], argv[2], std::atoi(argv[3]));
  return 0;
}
