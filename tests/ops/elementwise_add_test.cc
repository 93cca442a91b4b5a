#include "passes/backward.h"
#include "tensor/host.h"
#include "tests/ops/elementwise.h"

namespace fleet {
namespace {

std::vector<Values> naive(const Operands& operands, const std::vector<Values>& in) {
  return naive_elementwise(operands, in, [](double x, double y) { return x + y; });
}

void check(const Operands& operands) {
  SCOPED_TRACE(operands.x.text() + " and " + operands.y.text());
  check_op({.type = "elementwise_add",
            .attributes = {{"axis", operands.axis}},
            .inputs = {{.shape = operands.x}, {.shape = operands.y}},
            .reference = [&](const std::vector<Values>& in) { return naive(operands, in); },
            .check_gradient = small(operands)});
}

TEST(ElementwiseAdd, SameShape_MatchesReference) { check({{3, 4, 5}, {3, 4, 5}}); }

TEST(ElementwiseAdd, Spread_MatchesReference) {
  for (const Operands& operands : spreads()) check(operands);
}

TEST(ElementwiseAdd, OneGradientWanted_MatchesReference) {
  for (const Operands& operands : {Operands{{4, 6}, {6}}, Operands{{4, 6}, {4, 6}}}) {
    for (const int wanted : {0, 1}) {
      check_op({.type = "elementwise_add",
                .inputs = {{.shape = operands.x, .differentiate = wanted == 0},
                           {.shape = operands.y, .differentiate = wanted == 1}},
                .reference = [&](const std::vector<Values>& in) { return naive(operands, in); }});
    }
  }
}

TEST(ElementwiseAdd, BlockedLayout_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  const Operands operands{{2, 20, 3, 3}, {2, 20, 3, 3}};
  check_op({.type = "elementwise_add",
            .inputs = {{.shape = operands.x, .kind = VarKind::kState, .layout = blocked},
                       {.shape = operands.y, .kind = VarKind::kState, .layout = blocked}},
            .reference = [&](const std::vector<Values>& in) { return naive(operands, in); }});
}

TEST(ElementwiseAdd, ShapesThatDoNotFit_AreRefusedByName) {
  try {
    check({{2, 3}, {4}});
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("[4]"), std::string::npos) << error.what();
  }
}

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
