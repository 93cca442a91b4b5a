// linear_cross_entropy in a network whose head is its embedding, as in GPT-2: against PyTorch, and
// under the passes that rewrite training.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "exec/backend.h"
#include "exec/executor.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

nlohmann::json golden_head() {
  std::ifstream file(source_folder() + "/tests/golden/linear_cross_entropy.json");
  return nlohmann::json::parse(file);
}

// hidden = tanh(onehot(ids) head), loss = linear_cross_entropy(hidden, head).
struct TiedHead {
  nlohmann::json golden = golden_head();
  Program program;
  SectionId forward = program.add_section("forward", {});
  VarId head, onehot, labels, weight, hidden, loss, losses;

  explicit TiedHead(int64_t chunk) {
    const int64_t rows = golden["rows"], classes = golden["classes"], depth = golden["depth"];
    head = program.parameter("head", {classes, depth}, {});
    onehot = program.feed("onehot", DType::kFloat32, {rows, classes});
    labels = program.feed("labels", DType::kInt64, {rows});
    weight = program.feed("row_weight", DType::kFloat32, {rows});
    const VarId embedded = program.emit(forward, "matmul", {onehot, head})[0];
    hidden = program.emit(forward, "tanh", {embedded}, {}, "hidden")[0];
    const std::vector<VarId> out = program.emit(forward, "linear_cross_entropy",
                                                {hidden, head, labels, weight}, {{"chunk", chunk}});
    loss = out[0];
    losses = out[1];
  }
  void append_backward() {
    fleet::append_backward(program, forward, loss, 1 / golden["denominator"].get<double>());
  }
  int count(const std::string& type) const {
    return static_cast<int>(std::count_if(program.ops().begin(), program.ops().end(),
                                          [&](const Op& op) { return op.type() == type; }));
  }

  // Runs training steps and compares. sums: gradients of the head are added up over the steps.
  void compare(double tolerance, int steps = 1, bool sums = false) {
    const VarId dhead = program.gradient(head), dhidden = program.gradient(hidden);
    HostDevice device;
    Executor executor(plan_program(program, {loss, losses, dhead, dhidden}, {.device = &device}),
                      device, nullptr);
    const std::vector<int64_t> ids = golden["ids"];
    std::vector<float> ones(program.var(onehot).shape.elements());
    const size_t classes = golden["classes"];
    for (size_t n = 0; n < ids.size(); ++n) ones[n * classes + ids[n]] = 1;
    executor.write(head, golden["head"].get<std::vector<float>>());
    executor.write(onehot, ones);
    executor.write(labels, golden["labels"].get<std::vector<int64_t>>());
    executor.write(weight, golden["weights"].get<std::vector<float>>());
    for (int step = 0; step < steps; ++step) executor.run({});
    executor.synchronize();
    const double mean = executor.values<float>(loss)[0] / golden["denominator"].get<double>();
    EXPECT_NEAR(mean, golden["loss"].get<double>(), tolerance);
    expect(executor, losses, "losses", tolerance);
    expect(executor, dhead, "dhead", tolerance, sums ? steps : 1);
    expect(executor, dhidden, "dhidden", tolerance);
  }

 private:
  void expect(Executor& executor, VarId id, const char* name, double tolerance,
              int times = 1) const {
    std::vector<float> wanted = golden[name];
    for (float& value : wanted) value *= static_cast<float>(times);
    std::vector<float> got;
    if (program.var(id).dtype == DType::kBFloat16) {
      const auto low = executor.values<BFloat16>(id);
      got.assign(low.begin(), low.end());
    } else {
      const auto values = executor.values<float>(id);
      got.assign(values.begin(), values.end());
    }
    EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(static_cast<float>(tolerance)), wanted))
        << name;
  }
};

TEST(TiedHead, LossAndGradients_ArePyTorchs) {
  for (const int64_t chunk : {0, 1, 3}) {
    TiedHead made(chunk);
    made.append_backward();
    made.compare(1e-6);
  }
}

TEST(TiedHead, MixedPrecision_FollowsPyTorch) {
  std::string why;
  if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  TiedHead made(3);
  run_pass("amp", made.program, {}, {{"low", std::string("bfloat16")}});
  made.append_backward();
  run_pass("amp_parameters", made.program, {});
  EXPECT_EQ(made.program.var(made.loss).dtype, DType::kFloat32);
  made.compare(2e-2);
}

TEST(TiedHead, GradientMerge_AddsUpTheGradients) {
  TiedHead made(3);
  made.append_backward();
  run_pass("merge_gradients", made.program, {});
  made.compare(2e-6, /*steps=*/3, /*sums=*/true);
}

// A head that is not trained has no gradient, and the one before it does.
TEST(TiedHead, FrozenHead_LeavesOutItsProduct) {
  TiedHead made(0);
  made.program.var(made.head).trainable = false;
  const VarId seed = made.program.feed("seed", DType::kFloat32, {1});
  append_backward_from(made.program, made.forward, {{made.loss, seed}}, {made.hidden});
  for (const Op& op : made.program.ops()) {
    if (op.type() != "linear_cross_entropy_with_gradient") continue;
    EXPECT_NE(op.outputs[3], kNoVar);
    EXPECT_EQ(op.outputs[4], kNoVar);
  }
  EXPECT_EQ(made.count("linear_cross_entropy_with_gradient"), 1);
}

// Its results are kept even if a checkpoint comes after it: a second run would cost three products.
TEST(TiedHead, Recompute_RunsTheHeadOnce) {
  TiedHead made(3);
  const VarId last =
      made.program.emit(made.forward, "scale", {made.loss}, {{"scale", 1.0}}, "checkpoint")[0];
  made.loss = last;
  made.append_backward();
  run_pass("recompute", made.program, {},
           {{"checkpoints", std::vector<std::string>{made.program.var(last).name}}});
  EXPECT_EQ(made.count("linear_cross_entropy_with_gradient"), 1);
  EXPECT_EQ(made.count("linear_cross_entropy"), 0);
  EXPECT_EQ(made.count("tanh"), 2);
  made.compare(1e-6);
}

}  // namespace
}  // namespace fleet
