#include <gtest/gtest.h>

#include "passes/backward.h"
#include "tests/engine/ops/naive_convolution.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct Conv2dCase {
  Shape x, weight;
  std::vector<int64_t> strides = {1, 1}, paddings = {0, 0}, dilations = {1, 1};
  int64_t groups = 1;
  bool bias = false;
  bool use_cudnn = true;
  bool relu = false;  // x passes through it on the way in
};

Values relu(Values x) {
  for (double& value : x) value = std::max(value, 0.0);
  return x;
}

void check_conv2d(const Conv2dCase& c) {
  SCOPED_TRACE("x " + c.x.text() + " weight " + c.weight.text() + " groups " +
               std::to_string(c.groups));
  check_op({.type = "conv2d",
            .attributes = {{"strides", c.strides},
                           {"paddings", c.paddings},
                           {"dilations", c.dilations},
                           {"groups", c.groups},
                           {"use_cudnn", c.use_cudnn},
                           {"input_activation", std::string(c.relu ? "relu" : "")}},
            .inputs = {{.shape = c.x},
                       {.shape = c.weight, .kind = VarKind::kParameter},
                       {.shape = {c.weight[0]}, .kind = VarKind::kParameter, .present = c.bias}},
            .reference =
                [&](const std::vector<Values>& in) {
                  return std::vector<Values>{naive_convolution(
                      {c.x, c.weight, c.strides, c.paddings, c.dilations, c.groups},
                      c.relu ? relu(in[0]) : in[0], in[1], in[2])};
                },
            .step = c.relu ? 1e-6 : 1e-4});
}

TEST(Conv2d, OneByOne_MatchesReference) {
  check_conv2d({.x = {2, 16, 5, 5}, .weight = {32, 16, 1, 1}});
  check_conv2d({.x = {2, 17, 5, 4}, .weight = {20, 17, 1, 1}, .bias = true});
  check_conv2d({.x = {2, 16, 7, 7}, .weight = {32, 16, 1, 1}, .strides = {2, 2}});
}

TEST(Conv2d, ThreeByThree_MatchesReference) {
  check_conv2d({.x = {1, 16, 4, 4}, .weight = {16, 16, 3, 3}, .paddings = {1, 1}});
  check_conv2d({.x = {2, 20, 3, 2}, .weight = {17, 20, 3, 3}, .paddings = {1, 1}, .bias = true});
  check_conv2d(
      {.x = {1, 16, 5, 4}, .weight = {32, 16, 3, 3}, .strides = {2, 2}, .paddings = {1, 1}});
}

TEST(Conv2d, FewChannels_MatchesReference) {
  check_conv2d({.x = {1, 3, 9, 8}, .weight = {16, 3, 7, 7}, .strides = {2, 2}, .paddings = {3, 3}});
  check_conv2d({.x = {2, 1, 8, 8}, .weight = {6, 1, 5, 5}, .paddings = {2, 2}, .bias = true});
  check_conv2d({.x = {2, 3, 5, 5}, .weight = {10, 3, 3, 3}, .paddings = {1, 1}});
  check_conv2d({.x = {2, 10, 5, 5}, .weight = {17, 10, 3, 3}, .paddings = {1, 1}});
}

// Windows that tile the image, also one of padded channels: products on a GPU, in 16-bit types.
TEST(Conv2d, Patches_MatchReference) {
  check_conv2d({.x = {2, 3, 8, 12}, .weight = {10, 3, 4, 4}, .strides = {4, 4}, .bias = true});
  check_conv2d({.x = {2, 8, 4, 6}, .weight = {9, 8, 2, 2}, .strides = {2, 2}, .bias = true});
  check_conv2d({.x = {1, 16, 6, 4}, .weight = {8, 16, 3, 2}, .strides = {3, 2}});
}

TEST(Conv2d, OneChannelToOne_MatchesReference) {
  check_conv2d({.x = {2, 1, 6, 5}, .weight = {1, 1, 3, 3}, .paddings = {1, 1}, .bias = true});
}

TEST(Conv2d, UnevenWindow_MatchesReference) {
  check_conv2d({.x = {2, 5, 9, 6},
                .weight = {4, 5, 3, 2},
                .strides = {2, 1},
                .paddings = {1, 0},
                .dilations = {1, 2}});
  check_conv2d(
      {.x = {1, 16, 4, 4}, .weight = {16, 16, 3, 3}, .strides = {3, 2}});  // a column left over
}

// TensorFlow's SAME: more behind the image than in front of it.
TEST(Conv2d, UnevenPadding_MatchesReference) {
  check_conv2d({.x = {2, 3, 8, 6},
                .weight = {16, 3, 3, 3},
                .strides = {2, 2},
                .paddings = {0, 0, 1, 1},
                .bias = true});
  check_conv2d(
      {.x = {2, 16, 6, 7}, .weight = {8, 16, 5, 5}, .strides = {2, 2}, .paddings = {1, 2, 2, 2}});
  check_conv2d(
      {.x = {1, 16, 4, 4}, .weight = {16, 16, 3, 3}, .paddings = {0, 2, 2, 0}, .bias = true});
  check_conv2d(
      {.x = {2, 16, 4, 4}, .weight = {8, 16, 2, 2}, .strides = {2, 2}, .paddings = {0, 0, 1, 0}});
}

TEST(Conv2d, DepthwiseWithUnevenPadding_MatchesReference) {
  for (const int64_t kernel : {3, 5, 7}) {
    check_conv2d({.x = {2, 10, 8, 7},
                  .weight = {10, 1, kernel, kernel},
                  .strides = {2, 2},
                  .paddings = {kernel / 2 - 1, kernel / 2, kernel / 2, kernel / 2},
                  .groups = 10});
    check_conv2d({.x = {1, 16, 4, 5},
                  .weight = {16, 1, kernel, kernel},
                  .paddings = {0, 1, kernel - 1, kernel - 2},
                  .groups = 16,
                  .bias = true});
  }
  check_conv2d({.x = {2, 9, 8, 6},
                .weight = {9, 1, 3, 2},
                .strides = {2, 1},
                .paddings = {0, 0, 1, 1},
                .groups = 9});
}

TEST(Conv2d, Dilated_MatchesReference) {
  check_conv2d(
      {.x = {1, 16, 4, 4}, .weight = {16, 16, 3, 3}, .paddings = {2, 2}, .dilations = {2, 2}});
  check_conv2d({.x = {1, 3, 9, 9}, .weight = {5, 3, 3, 3}, .dilations = {3, 2}});
}

TEST(Conv2d, Groups_MatchReference) {
  check_conv2d({.x = {1, 32, 3, 3}, .weight = {32, 16, 3, 3}, .paddings = {1, 1}, .groups = 2});
  check_conv2d({.x = {1, 20, 4, 4}, .weight = {40, 5, 3, 3}, .paddings = {1, 1}, .groups = 4});
  check_conv2d({.x = {2, 6, 5, 5}, .weight = {4, 3, 3, 3}, .groups = 2, .bias = true});
}

TEST(Conv2d, Depthwise_MatchesReference) {
  check_conv2d({.x = {2, 32, 6, 6}, .weight = {32, 1, 3, 3}, .paddings = {1, 1}, .groups = 32});
  check_conv2d({.x = {2, 10, 6, 5},
                .weight = {10, 1, 3, 3},
                .strides = {2, 2},
                .paddings = {1, 1},
                .groups = 10,
                .bias = true});
  check_conv2d(
      {.x = {1, 10, 5, 5}, .weight = {20, 1, 3, 3}, .groups = 10});  // two outputs a channel
  check_conv2d({.x = {1, 9, 5, 5}, .weight = {9, 1, 2, 3}, .groups = 9, .use_cudnn = false});
}

// Also where channels fill no whole block, windows leave columns over, and the kernel is wider than
// the image.
TEST(Conv2d, DepthwiseOfLargeKernels_MatchesReference) {
  check_conv2d({.x = {2, 32, 6, 7}, .weight = {32, 1, 7, 7}, .paddings = {3, 3}, .groups = 32});
  check_conv2d({.x = {2, 10, 9, 8},
                .weight = {10, 1, 5, 5},
                .strides = {2, 2},
                .paddings = {2, 2},
                .groups = 10,
                .bias = true});
  check_conv2d({.x = {1, 17, 9, 12}, .weight = {17, 1, 5, 5}, .strides = {1, 3}, .groups = 17});
  check_conv2d({.x = {3, 16, 2, 3},
                .weight = {16, 1, 7, 7},
                .paddings = {3, 3},
                .groups = 16,
                .bias = true});
}

TEST(Conv2d, DepthwiseWithRelu_MatchesReference) {
  check_conv2d({.x = {2, 32, 6, 6},
                .weight = {32, 1, 3, 3},
                .paddings = {1, 1},
                .groups = 32,
                .relu = true});
  check_conv2d({.x = {6, 10, 6, 5},
                .weight = {10, 1, 3, 3},
                .strides = {2, 2},
                .paddings = {1, 1},
                .groups = 10,
                .bias = true,
                .relu = true});
  check_conv2d({.x = {1, 9, 5, 5}, .weight = {9, 1, 2, 3}, .groups = 9, .relu = true});
}

// So large that relu and convolution take turns, slice by slice of the batch.
TEST(Conv2d, DepthwiseWithReluOfManyImages_IsReluThenConvolution) {
  if (op_may_lack_kernel()) GTEST_SKIP() << "convolutions need a library";
  const Shape x{6, 32, 128, 130}, weight{32, 1, 3, 3};
  const auto conv = [&](bool fused) {
    Program program;
    const SectionId section = program.add_section("forward", {});
    const Init draw{.kind = Init::kNormal, .a = 0, .b = 1};
    VarId image = program.parameter("x", x, draw);
    const VarId w = program.parameter("w", weight, draw);
    const VarId b = program.parameter("b", {32}, draw);
    if (!fused) image = program.emit(section, "relu", {image})[0];
    const VarId y = program.emit(section, "conv2d", {image, w, b},
                                 {{"groups", int64_t{32}},
                                  {"paddings", std::vector<int64_t>{1, 1}},
                                  {"input_activation", std::string(fused ? "relu" : "")}})[0];
    const VarId slope = program.state("slope", program.var(y).shape, draw);
    const VarId loss =
        program.emit(section, "mean", {program.emit(section, "elementwise_mul", {y, slope})[0]})[0];
    append_backward(program, section, loss, 1000);
    std::vector<VarId> kept = {y};
    for (const char* name : {"x", "w", "b"}) kept.push_back(program.gradient(program.find(name)));
    Executor executor(plan_program(program, kept, op_plan_options()), op_device(), nullptr);
    executor.initialize(3);
    executor.run({});
    std::vector<std::vector<float>> values;
    for (VarId id : kept) values.push_back(executor.values<float>(id));
    return values;
  };
  const auto apart = conv(false), fused = conv(true);
  EXPECT_EQ(fused[0], apart[0]) << "y";
  EXPECT_EQ(fused[1], apart[1]) << "dx";
  for (size_t i = 2; i < 4; ++i) {  // sums over the batch, in another order
    for (size_t k = 0; k < fused[i].size(); ++k) EXPECT_NEAR(fused[i][k], apart[i][k], 1e-4);
  }
}

TEST(Conv2d, InputActivationOfAnother_IsRefused) {
  EXPECT_THROW(check_conv2d({.x = {1, 4, 5, 5}, .weight = {8, 4, 3, 3}, .relu = true}), Error);
}

TEST(Conv2d, ChannelsLastImage_MatchesReference) {
  const Conv2dCase c{.x = {2, 32, 3, 3}, .weight = {16, 32, 1, 1}};
  check_op(
      {.type = "conv2d",
       .attributes = {{"paddings", c.paddings}},
       .inputs = {{.shape = c.x, .kind = VarKind::kState, .layout = Layout::channels_last(c.x)},
                  {.shape = c.weight, .kind = VarKind::kParameter},
                  {.present = false}},
       .reference = [&](const std::vector<Values>& in) {
         return std::vector<Values>{naive_convolution(
             {c.x, c.weight, c.strides, c.paddings, c.dilations, c.groups}, in[0], in[1], {})};
       }});
}

TEST(Conv2d, OnlyTheBiasIsTrained_MatchesReference) {
  const Conv2dCase c{.x = {2, 20, 4, 4}, .weight = {18, 20, 1, 1}};
  check_op({.type = "conv2d",
            .inputs = {{.shape = c.x, .differentiate = false},
                       {.shape = c.weight, .differentiate = false},
                       {.shape = {18}}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{
                  naive_convolution({c.x, c.weight, c.strides, c.paddings, c.dilations, c.groups},
                                    in[0], in[1], in[2])};
            }});
}

TEST(Conv2d, ChannelsThatDoNotFit_AreRefusedByName) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 3, 8, 8});
  const VarId weight = program.parameter("w", {8, 4, 3, 3}, {});
  try {
    program.emit(section, "conv2d", {x, weight});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("[8, 4, 3, 3]"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace fleet
