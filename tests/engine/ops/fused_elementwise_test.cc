#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ops/element_formula.h"
#include "passes/backward.h"
#include "passes/pass.h"
#include "tests/engine/ops/elementwise.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// A network of elementwise operations, made twice: as it is, and fused.
class Chain {
 public:
  explicit Chain(DType dtype) : dtype_(dtype) {}

  // A parameter; the values of a low type are a cast of it.
  VarId input(const Shape& shape, double deviation = 1) {
    const std::string name = "p" + std::to_string(parameters_++);
    const VarId id =
        program_.parameter(name, shape, {.kind = Init::kNormal, .a = 0, .b = deviation});
    return dtype_ == DType::kFloat32 ? id
                                     : emit("cast", {id}, {{"to", std::string(name_of(dtype_))}});
  }
  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program_.emit(forward_, type, std::move(inputs), std::move(attributes))[0];
  }
  VarId scale(VarId x, double factor, double bias = 0) {
    return emit("scale", {x}, {{"scale", factor}, {"bias", bias}});
  }

  // The result and the gradients of all parameters, of result * slope.
  std::vector<std::vector<float>> run(VarId result, bool fused) {
    if (dtype_ != DType::kFloat32) result = emit("cast", {result});
    const VarId slope = program_.state("slope", program_.var(result).shape,
                                       {.kind = Init::kNormal, .a = 0, .b = 1});
    const VarId loss = emit("mean", {emit("elementwise_mul", {result, slope})});
    const double count = static_cast<double>(program_.var(result).shape.elements());
    append_backward(program_, forward_, loss, count);
    const size_t before = program_.ops().size();
    if (fused) {
      EXPECT_TRUE(run_pass("fuse_elementwise", program_, {},
                           {{"keep", std::vector<std::string>{program_.var(result).name}}}));
      EXPECT_LT(program_.ops().size(), before);
    }
    std::vector<VarId> kept = {result};
    for (VarId id : program_.parameters()) kept.push_back(program_.gradient(id));
    Executor executor(plan_program(program_, kept, op_plan_options()), op_device(), nullptr);
    executor.initialize(5);
    for (int repeat = 0; repeat < 2; ++repeat) executor.run({});
    executor.synchronize();
    std::vector<std::vector<float>> values;
    for (VarId id : kept) values.push_back(executor.values<float>(id));
    return values;
  }
  Program& program() { return program_; }

 private:
  const DType dtype_;
  Program program_;
  SectionId forward_ = program_.add_section("forward", {});
  int parameters_ = 0;
};

using Build = std::function<VarId(Chain&)>;

// On the CPU to the last bit of float32. Elsewhere the compiler may contract products and sums
// differently; the sum of three in a 16-bit type is rounded twice by itself, and once fused.
void expect_same(const Build& build) {
  for (const OpVariant& variant : op_variants()) {
    if (variant.channels_last) continue;
    SCOPED_TRACE(name_of(variant.dtype));
    std::vector<std::vector<float>> values[2];
    for (const bool fused : {false, true}) {
      Chain chain(variant.dtype);
      values[fused] = chain.run(build(chain), fused);
    }
    ASSERT_EQ(values[0].size(), values[1].size());
    const bool exact = op_plan_options().backend == "cpu" && variant.dtype == DType::kFloat32;
    const double tolerance = std::max(2e-6, 4 * rounding_tolerance(variant.dtype));
    for (size_t k = 0; k < values[0].size(); ++k) {
      if (exact) {
        EXPECT_EQ(values[1][k], values[0][k]) << (k ? "gradient " : "result ") << k;
        continue;
      }
      double largest = 1e-3;
      for (float value : values[0][k]) largest = std::max<double>(largest, std::abs(value));
      for (size_t i = 0; i < values[0][k].size(); ++i) {
        ASSERT_NEAR(values[1][k][i], values[0][k][i], tolerance * largest) << k << " at " << i;
      }
    }
  }
}

// gelu's tanh form, as networks write it out.
VarId written_out_gelu(Chain& chain, VarId x) {
  const VarId cube = chain.emit("elementwise_mul", {chain.emit("elementwise_mul", {x, x}), x});
  const VarId inner = chain.emit("elementwise_add", {x, chain.scale(cube, 0.044715)});
  const VarId gate = chain.scale(chain.emit("tanh", {chain.scale(inner, 0.7978845608)}), 0.5, 0.5);
  return chain.emit("elementwise_mul", {x, gate});
}

TEST(FusedElementwise, WrittenOutGelu_IsThatOfTheOperations) {
  for (const Shape& shape : {Shape{7}, Shape{33, 61}, Shape{3, 20001}}) {
    expect_same([&](Chain& chain) { return written_out_gelu(chain, chain.input(shape)); });
  }
}

TEST(FusedElementwise, EveryOperation_IsThatOfTheOperations) {
  for (const char* type :
       {"relu", "relu6", "tanh", "sigmoid", "gelu", "hardsigmoid", "hardswish", "silu"}) {
    SCOPED_TRACE(type);
    expect_same([&](Chain& chain) {
      const VarId x = chain.input({5, 131}, 4);
      return chain.scale(chain.emit(type, {chain.scale(x, 1.5, 0.25)}), -0.75);
    });
  }
  expect_same([&](Chain& chain) {
    const VarId x = chain.input({5, 131}, 4);
    return chain.scale(chain.emit("gelu", {chain.scale(x, 1.5)}, {{"approximate", true}}), 2);
  });
  expect_same([&](Chain& chain) {
    const VarId x = chain.input({5, 131}), y = chain.input({5, 131});
    const VarId difference = chain.emit("elementwise_sub", {x, y});
    const VarId clipped = chain.emit("clip", {difference}, {{"min", -0.5}, {"max", 1.25}});
    return chain.emit("sum", {chain.emit("elementwise_mul", {clipped, x}), y, clipped});
  });
  expect_same([&](Chain& chain) {
    const VarId x = chain.input({5, 131}), y = chain.input({5, 131});
    return chain.scale(chain.emit("elementwise_add", {x, y}, {{"activation", std::string("relu")}}),
                       3);
  });
}

TEST(FusedElementwise, WhatSpreads_IsThatOfTheOperations) {
  for (const Operands& operands : spreads()) {
    SCOPED_TRACE(operands.x.text() + " and " + operands.y.text());
    expect_same([&](Chain& chain) {
      const VarId x = chain.input(operands.x), y = chain.input(operands.y);
      const VarId z = chain.input(operands.y);
      const Attributes axis{{"axis", operands.axis}};
      const VarId sum = chain.emit("elementwise_add", {chain.scale(x, 2), y}, axis);
      return chain.emit("elementwise_mul", {chain.emit("tanh", {sum}), z}, axis);
    });
  }
}

// One vector along two axes of a square.
TEST(FusedElementwise, SameVectorAlongTwoAxes_SpreadsEachWay) {
  expect_same([&](Chain& chain) {
    const VarId x = chain.input({9, 9}), y = chain.input({9});
    const VarId rows = chain.emit("elementwise_add", {x, y}, {{"axis", int64_t{0}}});
    return chain.emit("elementwise_mul", {rows, y}, {{"axis", int64_t{1}}});
  });
}

TEST(FusedElementwise, PaddedImages_StayThatOfTheOperations) {
  const Shape shape{2, 20, 3, 3};
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  for (const double bias : {0.0, 1.0}) {  // with one, padding would not stay zero
    std::vector<float> values[2];
    for (const bool fused : {false, true}) {
      Program program;
      const SectionId section = program.add_section("forward", {});
      const VarId x = program.state("x", shape, {.kind = Init::kNormal, .a = 0, .b = 1});
      const VarId y = program.emit(section, "scale", {x}, {{"scale", 3.0}, {"bias", bias}})[0];
      const VarId z = program.emit(section, "relu", {y})[0];
      if (fused) run_pass("fuse_elementwise", program, {});
      PlanOptions options = op_plan_options();
      options.initial_layouts[x] = blocked;
      Executor executor(plan_program(program, {z}, options), op_device(), nullptr);
      executor.initialize(5);
      executor.run({});
      executor.synchronize();
      values[fused] = executor.values<float>(z);
    }
    EXPECT_EQ(values[1], values[0]) << bias;
  }
}

TEST(FusedElementwise, TextOfAFormula_GivesItBack) {
  ElementFormula formula;
  const int x = formula.append({.code = ElementCode::kInput, .a = 0});
  const int y = formula.append({.code = ElementCode::kScale, .a = x, .p = 0.1, .q = -1e300});
  formula.append({.code = ElementCode::kMultiplyAdd, .a = x, .b = y, .c = x});
  formula.axes = {-1};
  formula.results = {2, 1};
  Attributes attributes;
  to_attributes(formula, attributes);
  const ElementFormula again = formula_of(attributes);
  EXPECT_EQ(again.steps, formula.steps);
  EXPECT_EQ(again.axes, formula.axes);
  EXPECT_EQ(again.results, formula.results);
}

// As many registers as values that live at once, each step in one that is free.
TEST(FusedElementwise, Registers_AreTakenAgain) {
  ElementFormula formula;
  int value = formula.append({.code = ElementCode::kInput, .a = 0});
  for (int i = 0; i < 30; ++i) {
    value = formula.append({.code = ElementCode::kScale, .a = value, .p = 2.0 + i});
  }
  formula.axes = {-1};
  formula.results = {value};
  EXPECT_EQ(assign_registers(formula).registers, 1);
  formula.results = {value, 3};
  const ElementProgram program = assign_registers(formula);
  EXPECT_EQ(program.registers, 2);
  EXPECT_NE(program.results[0], program.results[1]);
}

TEST(FusedElementwise, Evaluate_IsTheArithmetic) {
  ElementFormula formula;
  const int x = formula.append({.code = ElementCode::kInput, .a = 0});
  const int y = formula.append({.code = ElementCode::kInput, .a = 1});
  const int sum = formula.append({.code = ElementCode::kMultiplyPlus, .a = x, .b = y, .q = 1});
  formula.axes = {-1, -1};
  formula.results = {formula.append({.code = ElementCode::kWhereAbove, .a = x, .b = sum, .p = 0})};
  EXPECT_EQ(formula.evaluate({2, 3}), std::vector<float>{7});
  EXPECT_EQ(formula.evaluate({-2, 3}), std::vector<float>{0});
  EXPECT_TRUE(formula.maps_zeros_to_zeros());
  formula.results = {sum};
  EXPECT_FALSE(formula.maps_zeros_to_zeros());
}

}  // namespace
}  // namespace fleet
