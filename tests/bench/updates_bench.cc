// Updates of ResNet-50's 161 parameters by each rule: one operation a parameter, all in one, and
// all in one with bfloat16 gradients and copies (mixed precision); in turns, against a copy of as
// many bytes as the update reads and writes, in the same run. lars and lamb against momentum and
// adamw, all in one.
//
// Links: ops optim models passes exec backend_cpu
#include <algorithm>
#include <chrono>
#include <cstdio>
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

constexpr int kRounds = 15;

struct Contender {
  std::string name;
  bool merged, low;
  double bytes = 0;  // read and written
  std::unique_ptr<Executor> executor = {};
  std::vector<double> seconds = {};
};

std::vector<Shape> resnet50_shapes() {
  Program program;
  const ModelDef& def = model_registry().get("resnet50");
  build_training(program,
                 {.model = "resnet50",
                  .model_settings = ConfigTree::from_json("{}", "bench").validate(def.schema),
                  .batch = 1,
                  .columns = image_columns(def.image)});
  std::vector<Shape> shapes;
  for (VarId id : program.parameters()) shapes.push_back(program.var(id).shape);
  return shapes;
}

void build(Contender& contender, const std::string& rule, int states, Device& device) {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> parameters;
  for (const Shape& shape : resnet50_shapes()) {
    const std::string name = "p" + std::to_string(parameters.size());
    parameters.push_back(program.parameter(name, shape, {}));
    program.set_gradient(
        parameters.back(),
        program.feed(name + "@GRAD", contender.low ? DType::kBFloat16 : DType::kFloat32, shape));
    if (contender.low) program.make_copy(parameters.back(), DType::kBFloat16);
    // Parameter and states are read and written; gradient and copy are two bytes each, or four.
    contender.bytes += static_cast<double>(shape.elements()) * (8 * (1 + states) + 4);
  }
  const ConfigTree tree =
      ConfigTree::from_json(R"({"weight_decay": 1e-4, "name": ")" + rule + "\"}", "bench");
  append_updates(program, section, parameters, rate, tree.validate(optimizer_schema(rule)));
  if (contender.merged) run_pass("fuse_all_optimizer_ops", program, {});
  contender.executor =
      std::make_unique<Executor>(plan_program(std::move(program), {}), device, nullptr);
  contender.executor->initialize(1);
  contender.executor->run({});
}

// A copy, by the kernel that adds gradients up.
std::unique_ptr<Executor> make_copy(double bytes, Device& device) {
  Program program;
  const SectionId section = program.add_section("copy", {});
  const Shape shape{static_cast<int64_t>(bytes / 8)};
  const VarId from = program.state("from", shape, {}), to = program.state("to", shape, {});
  program.append(section, "sum", {from}, {to});
  auto executor = std::make_unique<Executor>(plan_program(std::move(program), {}), device, nullptr);
  executor->initialize(1);
  executor->run({});
  return executor;
}

double seconds_of(Executor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  executor.run({});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void compare(const std::string& rule, int states) {
  HostDevice device;
  Contender contenders[] = {{"one by one", false, false},
                            {"all in one", true, false},
                            {"all in one, bfloat16", true, true}};
  for (Contender& contender : contenders) build(contender, rule, states, device);
  const auto copy = make_copy(contenders[0].bytes, device);
  std::vector<double> copies;
  for (int round = 0; round < kRounds; ++round) {
    copies.push_back(seconds_of(*copy));
    for (Contender& contender : contenders) {
      contender.seconds.push_back(seconds_of(*contender.executor));
    }
  }
  const double base = median(contenders[0].seconds);
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    std::printf("%-10s %-22s %7.2f ms   %5.2fx of one by one   %5.2f of a copy's speed\n",
                rule.c_str(), contender.name.c_str(), 1e3 * seconds, base / seconds,
                median(copies) / seconds);
  }
}

// A rule that needs the norms of whole parameters, against the elementwise one with as many states.
void compare_rules(const std::string& rule, const std::string& elementwise, int states) {
  constexpr double kAsked = 1.5;
  HostDevice device;
  Contender ours{rule, true, false}, theirs{elementwise, true, false};
  build(ours, rule, states, device);
  build(theirs, elementwise, states, device);
  std::vector<double> ratios;
  for (int round = 0; round < 2 * kRounds; ++round) {
    for (Contender* contender : {&ours, &theirs}) {
      contender->seconds.push_back(seconds_of(*contender->executor));
    }
    ratios.push_back(ours.seconds.back() / theirs.seconds.back());
  }
  const double ratio = median(ratios);
  std::printf("updates_%s: ratio %.2f (ours %.2f ms, %s %.2f ms; asked for <= %.1f: %s)\n",
              rule.c_str(), ratio, 1e3 * median(ours.seconds), elementwise.c_str(),
              1e3 * median(theirs.seconds), kAsked, ratio <= kAsked ? "met" : "MISSED");
}

}  // namespace
}  // namespace fleet

int main() {
  fleet::set_up_logging("WARNING", "bench");
  fleet::compare("sgd", 0);
  fleet::compare("momentum", 1);
  fleet::compare("adam", 2);
  fleet::compare_rules("lars", "momentum", 1);
  fleet::compare_rules("lamb", "adamw", 2);
  return 0;
}
