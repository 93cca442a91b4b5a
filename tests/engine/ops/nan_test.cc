// NaN stays NaN through relu and what has a relu in it, on every backend, as in torch: a loss must
// show the damage. Gradients pass where the activation's output is NaN.
#include <gtest/gtest.h>

#include <cmath>

#include "exec/executor.h"
#include "passes/pass.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

const Shape kImage{2, 20, 5, 4};
constexpr int64_t kBad = 33;  // in channel 1 of image 0

std::vector<float> image(float at_bad) {
  std::vector<float> values(kImage.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 19) - 9;
  values[kBad] = at_bad;
  return values;
}

// One operation whose inputs are feeds; each in all layouts that a Plan gives it.
struct OneOp {
  std::string type;
  std::vector<std::pair<Shape, std::vector<float>>> inputs;
  Attributes attributes = {};
  int outputs = 1;  // made, of those that there are

  // Output 0; empty if the device has no kernel for it.
  std::vector<float> run(std::vector<std::vector<float>>* others = nullptr) const {
    Program program;
    const SectionId section = program.add_section("main", {});
    std::vector<VarId> in, out;
    for (const auto& [shape, unused] : inputs) {
      in.push_back(program.feed("in" + std::to_string(in.size()), DType::kFloat32, shape));
    }
    for (int i = 0; i < outputs; ++i) out.push_back(program.temporary("out" + std::to_string(i)));
    program.append(section, type, in, out, attributes);
    Executor executor(plan_program(program, out, op_plan_options()), op_device(), nullptr);
    for (size_t i = 0; i < in.size(); ++i) executor.feed(in[i], inputs[i].second);
    executor.run({});
    for (size_t i = 1; others && i < out.size(); ++i) {
      others->push_back(executor.program().var(out[i]).dtype == DType::kFloat32
                            ? executor.values<float>(out[i])
                            : std::vector<float>());
    }
    return executor.values<float>(out[0]);
  }
};

// NaN at kBad and nowhere else, and what is below zero is cut off.
void expect_only_bad(const std::vector<float>& y, const std::string& type) {
  ASSERT_EQ(y.size(), static_cast<size_t>(kImage.elements())) << type;
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(std::isnan(y[i]), i == kBad) << type << " " << i << " is " << y[i];
    if (i == kBad) continue;
    ASSERT_GE(y[i], 0) << type << " " << i;
  }
}

TEST(Nan, Activations_PassItOn) {
  const std::vector<float> zero(kImage.elements(), 0);
  const std::vector<OneOp> ops = {
      {.type = "relu", .inputs = {{kImage, image(NAN)}}},
      {.type = "relu6", .inputs = {{kImage, image(NAN)}}},
      {.type = "elementwise_add",
       .inputs = {{kImage, image(NAN)}, {kImage, zero}},
       .attributes = {{"activation", std::string("relu")}}},
      {.type = "elementwise_add",
       .inputs = {{kImage, zero}, {kImage, image(NAN)}},
       .attributes = {{"y_activation", std::string("relu")}}},
  };
  for (const OneOp& op : ops) expect_only_bad(op.run(), op.type);
}

TEST(Nan, GradientsOfActivations_PassWhereTheOutputIsNan) {
  const std::vector<float> slope(kImage.elements(), 2);
  std::vector<float> y = image(NAN);
  for (float& value : y) value = value < 0 ? 0 : value;
  const std::vector<OneOp> ops = {
      {.type = "relu_grad", .inputs = {{kImage, y}, {kImage, slope}}},
      {.type = "relu6_grad", .inputs = {{kImage, y}, {kImage, slope}}},
      {.type = "sum_relu_grad", .inputs = {{kImage, y}, {kImage, slope}}},
      {.type = "sum_relu_grad", .inputs = {{kImage, y}, {kImage, slope}, {kImage, slope}}},
  };
  for (const OneOp& op : ops) {
    const std::vector<float> dx = op.run();
    EXPECT_GT(dx[kBad], 0) << op.type;
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i] != 0) continue;
      ASSERT_EQ(dx[i], 0) << op.type << " " << i;
    }
  }
}

// Where the slope is 0, a gradient of Inf or NaN is not passed on, as in torch.
TEST(Nan, GradientsOfActivations_EndWhereTheSlopeIsZero) {
  const std::vector<float> at = image(-9);  // from -9 to 9
  const struct {
    const char* type;
    float below, above;  // the slope is 0 up to `below` and from `above` on
  } cases[] = {{"relu_grad", 0, INFINITY},
               {"relu6_grad", 0, 6},
               {"hardsigmoid_grad", 0, 1},
               {"hardswish_grad", -3, INFINITY}};
  for (const auto& [type, below, above] : cases) {
    for (const float gradient : {INFINITY, NAN}) {
      const std::vector<float> dy(kImage.elements(), gradient);
      const std::vector<float> dx =
          OneOp{.type = type, .inputs = {{kImage, at}, {kImage, dy}}}.run();
      for (size_t i = 0; i < dx.size(); ++i) {
        const bool ends = at[i] <= below || at[i] >= above;
        ASSERT_EQ(ends, dx[i] == 0)
            << type << " of " << gradient << " at " << at[i] << ": " << dx[i];
      }
    }
  }
}

// relu and its gradient as formulas.
TEST(Nan, FusedElementwise_PassesItOn) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, kImage);
  const VarId scaled = program.emit(section, "scale", {x}, {{"scale", 2.0}})[0];
  const VarId y = program.emit(section, "relu", {scaled})[0];
  ASSERT_TRUE(run_pass("fuse_elementwise", program, {}));
  Executor executor(plan_program(program, {y}, op_plan_options()), op_device(), nullptr);
  const std::vector<float> values = image(NAN);
  executor.feed(x, values);
  executor.run({});
  expect_only_bad(executor.values<float>(y), "fused_elementwise");
}

// The statistics of its channel are NaN: so is all of it, and nothing else. The running ones stay.
void check_normalisation(const std::string& type, const Attributes& attributes, const Shape& shape,
                         float bad) {
  const Shape channels{shape[1]};
  const std::vector<float> ones(shape[1], 1), halves(shape[1], 0.5f);
  std::vector<float> x(shape.elements());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 37) % 19) - 9;
  const int64_t inner = shape.elements() / shape[0] / shape[1];
  x[inner] = bad;  // channel 1 of the first image
  OneOp op{.type = type,
           .inputs = {{shape, x},
                      {channels, ones},
                      {channels, halves},
                      {channels, halves},
                      {channels, ones}},
           .attributes = attributes,
           .outputs = 6};
  if (type == "fused_bn_add_activation") {
    op.inputs.emplace_back(shape, std::vector<float>(shape.elements(), 0));
  }
  std::vector<std::vector<float>> others;
  const std::vector<float> y = op.run(&others);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const int64_t channel = i / inner % shape[1];
    ASSERT_EQ(std::isnan(y[i]), channel == 1) << type << shape.text() << " " << i << ": " << y[i];
  }
  EXPECT_EQ(others[0][1], 0.5f) << "the running mean of a channel without one";
  EXPECT_EQ(others[1][1], 1) << "the running variance";
  EXPECT_NE(others[0][0], 0.5f);
  EXPECT_NE(others[1][2], 1);
}

TEST(Nan, BatchNormWithRelu_PassesItOnAndKeepsTheRunningStatistics) {
  const Attributes relu = {{"activation", std::string("relu")}};
  for (const Shape& shape : {kImage, Shape{6, 16, 8, 8}, Shape{3, 5, 7}, Shape{9, 3}}) {
    for (const float bad : {NAN, INFINITY}) {
      check_normalisation("batch_norm", {}, shape, bad);
      check_normalisation("batch_norm", relu, shape, bad);
      check_normalisation("fused_bn_add_activation", {}, shape, bad);
    }
  }
}

TEST(Nan, DepthwiseConvolutionOfRelu_PassesItOn) {
  if (op_may_lack_kernel()) GTEST_SKIP() << "on a library";
  const Shape weight{20, 1, 1, 1};
  const OneOp op{
      .type = "conv2d",
      .inputs = {{kImage, image(NAN)}, {weight, std::vector<float>(20, 1)}},
      .attributes = {{"groups", int64_t{20}}, {"input_activation", std::string("relu")}}};
  expect_only_bad(op.run(), op.type);
}

}  // namespace
}  // namespace fleet
