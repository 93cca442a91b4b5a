#include <gtest/gtest.h>

#include "tests/engine/ops/naive_convolution.h"

namespace fleet {
namespace {

struct Conv2dTransposeCase {
  Shape x, weight;  // weight: [I, O / groups, KH, KW]
  Shape y;          // written out by hand from PyTorch's formula
  std::vector<int64_t> strides = {1, 1}, paddings = {0, 0}, dilations = {1, 1};
  std::vector<int64_t> output_padding = {0, 0};
  int64_t groups = 1;
  bool bias = false;
  bool use_cudnn = true;
};

// The adjoint of the convolution from y to x.
Values naive_conv2d_transpose(const Conv2dTransposeCase& c, const std::vector<Values>& in) {
  const NaiveConvolution conv{c.y, c.weight, c.strides, c.paddings, c.dilations, c.groups};
  EXPECT_EQ(conv.y().text(), c.x.text());
  Values y(c.y.elements());
  conv.each_product(
      [&](int64_t of_y, int64_t w, int64_t of_x) { y[of_y] += in[0][of_x] * in[1][w]; });
  add_bias(y, c.y, in[2]);
  return y;
}

void check_conv2d_transpose(const Conv2dTransposeCase& c) {
  SCOPED_TRACE("x " + c.x.text() + " weight " + c.weight.text());
  check_op({.type = "conv2d_transpose",
            .attributes = {{"strides", c.strides},
                           {"paddings", c.paddings},
                           {"dilations", c.dilations},
                           {"output_padding", c.output_padding},
                           {"groups", c.groups},
                           {"use_cudnn", c.use_cudnn}},
            .inputs = {{.shape = c.x},
                       {.shape = c.weight, .kind = VarKind::kParameter},
                       {.shape = {c.y[1]}, .kind = VarKind::kParameter, .present = c.bias}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_conv2d_transpose(c, in)};
            }});
}

TEST(Conv2dTranspose, Doubling_MatchesReference) {
  check_conv2d_transpose({.x = {2, 16, 4, 4},
                          .weight = {16, 16, 2, 2},
                          .y = {2, 16, 8, 8},
                          .strides = {2, 2},
                          .bias = true});
  check_conv2d_transpose({.x = {1, 20, 4, 3},
                          .weight = {20, 17, 3, 3},
                          .y = {1, 17, 8, 6},
                          .strides = {2, 2},
                          .paddings = {1, 1},
                          .output_padding = {1, 1}});
}

TEST(Conv2dTranspose, FewChannels_MatchesReference) {
  check_conv2d_transpose(
      {.x = {2, 10, 4, 4}, .weight = {10, 3, 3, 3}, .y = {2, 3, 6, 6}, .bias = true});
  check_conv2d_transpose({.x = {1, 1, 3, 5}, .weight = {1, 2, 4, 2}, .y = {1, 2, 6, 6}});
}

TEST(Conv2dTranspose, Dilated_MatchesReference) {
  check_conv2d_transpose({.x = {1, 16, 4, 4},
                          .weight = {16, 5, 3, 3},
                          .y = {1, 5, 8, 6},
                          .paddings = {0, 1},
                          .dilations = {2, 2},
                          .bias = true});
}

TEST(Conv2dTranspose, Groups_MatchReference) {
  check_conv2d_transpose(
      {.x = {1, 32, 3, 3}, .weight = {32, 16, 3, 3}, .y = {1, 32, 5, 5}, .groups = 2});
  check_conv2d_transpose({.x = {2, 6, 3, 3},
                          .weight = {6, 2, 2, 2},
                          .y = {2, 4, 6, 6},
                          .strides = {2, 2},
                          .groups = 2,
                          .bias = true});
  check_conv2d_transpose({.x = {1, 16, 4, 4},
                          .weight = {16, 1, 3, 3},
                          .y = {1, 16, 8, 8},
                          .strides = {2, 2},
                          .paddings = {1, 1},
                          .output_padding = {1, 1},
                          .groups = 16});
}

TEST(Conv2dTranspose, WithoutCudnn_MatchesReference) {
  check_conv2d_transpose({.x = {2, 10, 4, 4},
                          .weight = {10, 3, 3, 3},
                          .y = {2, 3, 8, 8},
                          .strides = {2, 2},
                          .paddings = {1, 1},
                          .output_padding = {1, 1},
                          .bias = true,
                          .use_cudnn = false});
  check_conv2d_transpose({.x = {2, 6, 3, 3},
                          .weight = {6, 2, 2, 2},
                          .y = {2, 4, 6, 6},
                          .strides = {2, 2},
                          .groups = 2,
                          .use_cudnn = false});
}

TEST(Conv2dTranspose, OutputPaddingOfAStride_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 4, 8, 8});
  const VarId weight = program.parameter("w", {4, 4, 3, 3}, {});
  EXPECT_THROW(program.emit(section, "conv2d_transpose", {x, weight},
                            {{"output_padding", std::vector<int64_t>{1, 1}}}),
               Error);
}

}  // namespace
}  // namespace fleet
