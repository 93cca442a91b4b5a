// Speed of elementwise kernels and update rules against that of memory: bytes read and written
// a second, against a copy of the same size by all threads in the same run.
// Links: ops optim passes exec backend_cpu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "exec/executor.h"
#include "optim/optimizer.h"
#include "tensor/host.h"

namespace fleet {
namespace {

const Shape kShape = {16, 256, 56, 56};  // 51 MB: far beyond the caches
constexpr int kRuns = 15;

double median_seconds(const std::function<void()>& body) {
  body();
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    body();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

// Runs a program of one operation.
double seconds_of(const std::function<void(Program&, SectionId)>& build, HostDevice& device) {
  Program program;
  build(program, program.add_section("main", {}));
  std::vector<VarId> keep;
  for (const Op& op : program.ops()) {
    for (VarId id : op.outputs) {
      if (id != kNoVar) keep.push_back(id);
    }
  }
  Executor executor(plan_program(program, keep), device, nullptr);
  executor.initialize(1);
  return median_seconds([&] { executor.run({}); });
}

// tensors: how many of kShape the operation reads and writes.
struct Case {
  const char* name;
  int tensors;
  std::function<void(Program&, SectionId)> build;
};

VarId tensor(Program& program, const std::string& name) {
  return program.state(name, kShape, {.kind = Init::kUniform, .a = -1, .b = 1});
}

Case op_case(const char* name, const char* type, int inputs, Attributes attributes = {}) {
  return {name, inputs + 1, [=](Program& program, SectionId section) {
            std::vector<VarId> vars;
            for (int i = 0; i < inputs; ++i) {
              vars.push_back(tensor(program, "x" + std::to_string(i)));
            }
            program.emit(section, type, vars, attributes);
          }};
}

Case optimizer_case(const char* name, int tensors) {
  return {name, tensors, [=](Program& program, SectionId section) {
            const VarId rate = program.feed("learning_rate", DType::kFloat32, {1});
            const VarId parameter = program.parameter("p", kShape, {});
            program.set_gradient(parameter, tensor(program, "g"));
            const ConfigTree tree = ConfigTree::from_json(
                std::string(R"({"weight_decay": 1e-4, "name": ")") + name + "\"}", "bench");
            append_updates(program, section, {parameter}, rate,
                           tree.validate(optimizer_schema(name)));
          }};
}

int run() {
  HostDevice device;
  const size_t bytes = kShape.elements() * sizeof(float);
  const double copy = seconds_of(op_case("copy", "sum", 1).build, device) / 2;  // a tensor
  std::printf("%-24s %8s %10s\n", "operation", "ms", "of copy");
  std::printf("%-24s %8.2f %9.2fx   (%.1f GB/s)\n", "copy", 2e3 * copy, 1.0,
              static_cast<double>(bytes) / copy / 1e9);
  const std::vector<Case> cases = {
      op_case("relu", "relu", 1),
      op_case("relu_grad", "relu_grad", 2),
      op_case("sigmoid", "sigmoid", 1),
      op_case("tanh", "tanh", 1),
      op_case("gelu", "gelu", 1),
      op_case("gelu_grad", "gelu_grad", 2),
      op_case("elementwise_add", "elementwise_add", 2),
      op_case("elementwise_add + relu", "elementwise_add", 2,
              {{"activation", std::string("relu")}}),
      op_case("sum of 3", "sum", 3),
      op_case("softmax (last axis, 56)", "softmax", 1),
      {"dropout", 2,
       [](Program& program, SectionId section) {
         const VarId key = program.feed("key", DType::kInt64, {kShape[0]});
         program.emit(section, "dropout", {tensor(program, "x"), key});
       }},
      optimizer_case("sgd", 3),
      optimizer_case("momentum", 5),
      optimizer_case("adam", 7),
  };
  for (const Case& one : cases) {
    const double seconds = seconds_of(one.build, device);
    std::printf("%-24s %8.2f %9.2fx\n", one.name, 1e3 * seconds, one.tensors * copy / seconds);
  }
  return 0;
}

}  // namespace
}  // namespace fleet

int main() { return fleet::run(); }
