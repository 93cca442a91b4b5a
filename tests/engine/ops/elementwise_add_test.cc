#include <cmath>

#include "passes/backward.h"
#include "tensor/host.h"
#include "tests/engine/ops/elementwise.h"

namespace fleet {
namespace {

INSTANTIATE_TEST_SUITE_P(Add, ElementwiseTest,
                         testing::Values(BinaryOperation{
                             "elementwise_add", [](double x, double y) { return x + y; }}));

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

struct TakenIn {
  std::string activation;
  double (*function)(double);
};
const TakenIn kTakenIn[] = {{"relu", [](double t) { return std::max(t, 0.0); }},
                            {"tanh", [](double t) { return std::tanh(t); }},
                            {"scale", [](double t) { return t * -1.5 + 0.25; }}};

// behind: function(x + y), else x + function(y).
void check_taken_in(const Operands& operands, const TakenIn& taken, bool behind, bool first = true,
                    bool second = true) {
  SCOPED_TRACE(taken.activation + (behind ? " behind " : " of y ") + operands.x.text() + " + " +
               operands.y.text());
  check_op({.type = "elementwise_add",
            .attributes = {{"axis", operands.axis},
                           {behind ? "activation" : "y_activation", taken.activation},
                           {"scale", -1.5},
                           {"bias", 0.25}},
            .inputs = {{.shape = operands.x, .differentiate = first},
                       {.shape = operands.y, .differentiate = second}},
            .reference =
                [&](const std::vector<Values>& in) {
                  std::vector<Values> terms = in;
                  if (!behind) {
                    for (double& y : terms[1]) y = taken.function(y);
                  }
                  auto out =
                      naive_elementwise(operands, terms, [](double x, double y) { return x + y; });
                  if (behind) {
                    for (double& value : out[0]) value = taken.function(value);
                  }
                  return out;
                },
            .step = 1e-6,
            .check_gradient = small(operands)});
}

TEST(ElementwiseAdd, WhatIsTakenIn_MatchesReference) {
  for (const TakenIn& taken : kTakenIn) {
    for (const bool behind : {true, false}) {
      check_taken_in({{2, 3, 4, 5}, {2, 3, 4, 5}}, taken, behind);
      for (const Operands& operands : spreads()) check_taken_in(operands, taken, behind);
    }
  }
}

TEST(ElementwiseAdd, WhatIsTakenInOneGradientWanted_MatchesReference) {
  for (const TakenIn& taken : kTakenIn) {
    for (const bool behind : {true, false}) {
      for (const Operands& operands : {Operands{{4, 6}, {6}}, Operands{{4, 6}, {4, 6}}}) {
        check_taken_in(operands, taken, behind, true, false);
        check_taken_in(operands, taken, behind, false, true);
      }
    }
  }
}

TEST(ElementwiseAdd, BothPlacesAtOnce_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {3});
  EXPECT_THROW(
      program.emit(section, "elementwise_add", {x, x},
                   {{"activation", std::string("relu")}, {"y_activation", std::string("tanh")}}),
      Error);
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
  Executor executor(plan_program(program, {gradient, loss}), device, nullptr);
  executor.initialize(1);
  executor.run({});
  EXPECT_EQ(executor.values<float>(loss)[0], 6);
  EXPECT_EQ(executor.values<float>(gradient), (std::vector<float>{1, 1, 1}));
}

}  // namespace
}  // namespace fleet
