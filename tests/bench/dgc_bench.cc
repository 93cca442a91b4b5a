// Cost of DGC in a training step on the CPU: accumulating and selecting the values to send, for the
// parameters of a VGG-16 of 15 million elements at several sparsities, and applying what two ranks
// sent; in turns with a momentum update of the same parameters, and with a copy of as many bytes as
// accumulating must read and write, in the same run.
//
// Links: ops optim passes exec backend_cpu
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/log.h"
#include "exec/executor.h"
#include "optim/optimizer.h"
#include "passes/pass.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

constexpr int kRounds = 21;

// VGG-16's weights at 32 x 32, its classifier one layer of 512 x 512 and one of 10.
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {64, 64, 3, 3},   {128, 64, 3, 3},  {128, 128, 3, 3}, {256, 128, 3, 3}, {256, 256, 3, 3},
      {256, 256, 3, 3}, {512, 256, 3, 3}, {512, 512, 3, 3}, {512, 512, 3, 3}, {512, 512, 3, 3},
      {512, 512, 3, 3}, {512, 512, 3, 3}, {512, 512}};
  return all;
}

double elements() {
  double sum = 0;
  for (const Shape& shape : shapes()) sum += static_cast<double>(shape.elements());
  return sum;
}

struct Contender {
  std::string name;
  std::unique_ptr<Executor> executor = {};
  std::vector<double> seconds = {};
};

Contender made(const std::string& name, Program program, Device& device) {
  Contender contender{name};
  contender.executor =
      std::make_unique<Executor>(plan_program(std::move(program), {}), device, nullptr);
  contender.executor->initialize(1);
  contender.executor->run({});
  return contender;
}

VarId random_state(Program& program, const std::string& name, const Shape& shape) {
  return program.state(name, shape, {Init::kNormal, 0, 1});
}

Program momentum() {
  Program program;
  const SectionId section = program.add_section("optimize", {});
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> parameters;
  for (const Shape& shape : shapes()) {
    const std::string name = "p" + std::to_string(parameters.size());
    parameters.push_back(program.parameter(name, shape, {}));
    program.set_gradient(parameters.back(), random_state(program, name + "@GRAD", shape));
  }
  const ConfigTree tree =
      ConfigTree::from_json(R"({"weight_decay": 1e-4, "name": "momentum"})", "bench");
  append_updates(program, section, parameters, rate, tree.validate(optimizer_schema("momentum")));
  run_pass("fuse_all_optimizer_ops", program, {});
  return program;
}

// applies: what two ranks sent is applied, in place of choosing it.
Program dgc(double sparsity, bool applies) {
  Program program;
  const SectionId section = program.add_section("dgc", {});
  const VarId encoded = program.temporary("encoded"), gathered = program.temporary("gathered");
  const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
  std::vector<VarId> inputs, outputs = {encoded}, applied = {rate, gathered};
  std::vector<int64_t> counts;
  for (const Shape& shape : shapes()) {
    const std::string name = "p" + std::to_string(counts.size());
    applied.push_back(program.parameter(name, shape, {}));
    inputs.push_back(applied.back());
    for (const char* member : {"g", "u", "v"}) {
      inputs.push_back(random_state(program, name + member, shape));
    }
    outputs.insert(outputs.end(), inputs.end() - 2, inputs.end());
    inputs.push_back(kNoVar);
    counts.push_back(static_cast<int64_t>(static_cast<double>(shape.elements()) * (1 - sparsity)));
  }
  program.append(section, "dgc_select", inputs, outputs,
                 {{"counts", counts}, {"weight_decays", std::vector<double>(counts.size(), 1e-4)}});
  if (!applies) return program;
  program.append(section, "concat", {encoded, encoded}, {gathered}, {{"axis", int64_t{0}}});
  program.append(section, "dgc_apply", applied, {applied.begin() + 2, applied.end()},
                 {{"counts", counts}});
  return program;
}

// A copy, by the kernel that adds gradients up.
Program copy(double bytes) {
  Program program;
  const SectionId section = program.add_section("copy", {});
  const Shape shape{static_cast<int64_t>(bytes / 8)};
  const VarId from = program.state("from", shape, {}), to = program.state("to", shape, {});
  program.append(section, "sum", {from}, {to});
  return program;
}

void compare() {
  HostDevice device;
  std::vector<Contender> contenders;
  contenders.push_back(made("momentum", momentum(), device));
  // Reads p, g, u and v, writes u and v.
  contenders.push_back(made("a copy of as much", copy(24 * elements()), device));
  for (const double sparsity : {0.75, 0.9375, 0.984375, 0.996, 0.999}) {
    contenders.push_back(
        made("sparsity " + std::to_string(sparsity), dgc(sparsity, false), device));
  }
  contenders.push_back(made("sparsity 0.999, applied", dgc(0.999, true), device));
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : contenders) {
      const auto begin = std::chrono::steady_clock::now();
      contender.executor->run({.step = round});
      contender.seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  std::printf("dgc: %.1f million elements\n", 1e-6 * elements());
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    std::printf("dgc: %-25s %7.2f ms   %5.2f of momentum's time   %5.2f of the copy's speed\n",
                contender.name.c_str(), 1e3 * seconds, seconds / median(contenders[0].seconds),
                median(contenders[1].seconds) / seconds);
  }
}

}  // namespace
}  // namespace fleet

int main() {
  fleet::set_up_logging("WARNING", "bench");
  fleet::compare();
  return 0;
}
