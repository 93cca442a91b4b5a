#include "passes/backward.h"
#include "tensor/host.h"
#include "tests/ops/elementwise.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Add, ElementwiseTest,
                         testing::Values(Elementwise{"elementwise_add",
                                                     [](double x, double y) { return x + y; }}));

std::vector<Values> naive_relu(const Operands& operands, const std::vector<Values>& in) {
  return naive_elementwise(operands, in, [](double x, double y) { return std::max(x + y, 0.0); });
}

void check_relu(const Operands& operands, bool first = true, bool second = true) {
  check_op({.type = "elementwise_add",
            .attributes = {{"axis", operands.axis}, {"activation", std::string("relu")}},
            .inputs = {{.shape = operands.x, .differentiate = first},
                       {.shape = operands.y, .differentiate = second}},
            .reference = [&](const std::vector<Values>& in) { return naive_relu(operands, in); },
            .step = 1e-6,
            .check_gradient = small(operands)});
}

TEST(ElementwiseAdd, WithRelu_MatchesReference) {
  check_relu({{2, 3, 4, 5}, {2, 3, 4, 5}});
  for (const Operands& operands : spreads()) check_relu(operands);
}

TEST(ElementwiseAdd, WithReluOneGradientWanted_MatchesReference) {
  for (const Operands& operands : {Operands{{4, 6}, {6}}, Operands{{4, 6}, {4, 6}}}) {
    check_relu(operands, true, false);
    check_relu(operands, false, true);
  }
}

// A gradient that is passed on must not be taken over in place while another reads it.
TEST(ElementwiseAdd, SameOperandTwice_GivesTwiceTheGradient) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId w = program.parameter("w", {3}, {.kind = Init::kConstant, .a = 2});
  const VarId sum = program.emit(forward, "elementwise_add", {w, w})[0];
  const VarId join =
      program.emit(forward, "elementwise_add", {sum, w}, {{"activation", std::string("relu")}})[0];
  const VarId loss = program.emit(forward, "mean", {join})[0];
  append_backward(program, forward, loss, 1);
  const VarId gradient = program.gradient(w);
  HostDevice device;
  Executor executor(make_plan(program, {gradient, loss}), device, nullptr);
  executor.initialize(1);
  executor.run({});
  EXPECT_EQ(executor.values<float>(loss)[0], 6);
  EXPECT_EQ(executor.values<float>(gradient), (std::vector<float>{1, 1, 1}));
}

}  // namespace
}  // namespace fleet
