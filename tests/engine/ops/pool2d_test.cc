#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "tests/engine/ops/image_layouts.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct Pool2dCase {
  Shape x, y;  // y written out by hand
  std::string type = "max";
  std::vector<int64_t> kernel = {2, 2}, strides = {2, 2}, paddings = {0, 0};
  bool ceil_mode = false, exclusive = true, global = false;
  std::optional<Layout> layout = {};
};

double naive_window(const Pool2dCase& c, const Values& x, int64_t plane, int64_t oh, int64_t ow) {
  const int64_t kernel_h = c.global ? c.x[2] : c.kernel[0];
  const int64_t kernel_w = c.global ? c.x[3] : c.kernel[1];
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  int64_t inside = 0;
  for (int64_t kh = 0; kh < kernel_h; ++kh) {
    for (int64_t kw = 0; kw < kernel_w; ++kw) {
      const int64_t h = c.global ? kh : oh * c.strides[0] - c.paddings[0] + kh;
      const int64_t w = c.global ? kw : ow * c.strides[1] - c.paddings[1] + kw;
      if (h < 0 || w < 0 || h >= c.x[2] || w >= c.x[3]) continue;
      const double value = x[(plane * c.x[2] + h) * c.x[3] + w];
      sum += value;
      most = std::max(most, value);
      ++inside;
    }
  }
  if (c.type == "max") return most;
  return sum / static_cast<double>(c.exclusive ? inside : kernel_h * kernel_w);
}

Values naive_pool2d(const Pool2dCase& c, const Values& x) {
  Values y;
  for (int64_t plane = 0; plane < c.x[0] * c.x[1]; ++plane) {
    for (int64_t oh = 0; oh < c.y[2]; ++oh) {
      for (int64_t ow = 0; ow < c.y[3]; ++ow) y.push_back(naive_window(c, x, plane, oh, ow));
    }
  }
  return y;
}

// Every element differs from every other of its channel by far more than the step of a difference;
// bfloat16 can hold them all.
Values distinct(const Shape& x) {
  const int64_t pixels = x[2] * x[3];
  Values values(x.elements());
  std::mt19937 random(5);
  for (auto channel = values.begin(); channel != values.end(); channel += pixels) {
    std::iota(channel, channel + pixels, -static_cast<double>(pixels / 2));
    std::shuffle(channel, channel + pixels, random);
  }
  for (double& value : values) value *= 0.0078125;
  return values;
}

void check_pool2d(const Pool2dCase& c) {
  SCOPED_TRACE(c.type + " of x " + c.x.text());
  check_op({.type = "pool2d",
            .attributes = {{"type", c.type},
                           {"kernel", c.kernel},
                           {"strides", c.strides},
                           {"paddings", c.paddings},
                           {"ceil_mode", c.ceil_mode},
                           {"exclusive", c.exclusive},
                           {"global", c.global}},
            .inputs = {{.shape = c.x,
                        .values = distinct(c.x),
                        .kind = c.layout ? VarKind::kState : VarKind::kFeed,
                        .layout = c.layout}},
            .reference = [&](const std::vector<Values>& in) {
              return std::vector<Values>{naive_pool2d(c, in[0])};
            }});
}

TEST(Pool2d, Max_MatchesReference) {
  check_pool2d({.x = {2, 3, 6, 4}, .y = {2, 3, 3, 2}});
  check_pool2d({.x = {2, 3, 7, 5}, .y = {2, 3, 3, 2}});  // a row and a column left over
  check_pool2d({.x = {2, 5, 7, 7},
                .y = {2, 5, 4, 4},
                .kernel = {3, 3},
                .strides = {2, 2},
                .paddings = {1, 1}});
}

TEST(Pool2d, MaxInBlockedLayouts_MatchesReference) {
  for (const int64_t channels : {16, 20, 10}) {
    const Shape x{2, channels, 7, 6}, y{2, channels, 4, 3};
    for (const Layout& layout : {blocked8(x), blocked16(x), Layout::channels_last(x)}) {
      check_pool2d({.x = x,
                    .y = y,
                    .kernel = {3, 3},
                    .strides = {2, 2},
                    .paddings = {1, 1},
                    .layout = layout});
      check_pool2d({.x = x,
                    .y = x,
                    .kernel = {3, 3},
                    .strides = {1, 1},
                    .paddings = {1, 1},
                    .layout = layout});
    }
  }
}

TEST(Pool2d, Average_MatchesReference) {
  check_pool2d({.x = {2, 3, 6, 4}, .y = {2, 3, 3, 2}, .type = "avg"});
  for (const bool exclusive : {true, false}) {
    const Shape x{2, 20, 7, 6};
    for (const Layout& layout : {Layout::plain(x), blocked16(x), Layout::channels_last(x)}) {
      check_pool2d({.x = x,
                    .y = {2, 20, 4, 3},
                    .type = "avg",
                    .kernel = {3, 3},
                    .strides = {2, 2},
                    .paddings = {1, 1},
                    .exclusive = exclusive,
                    .layout = layout});
    }
  }
}

TEST(Pool2d, CeilMode_RoundsTheNumberOfWindowsUp) {
  for (const std::string type : {"max", "avg"}) {
    for (const bool exclusive : {true, false}) {
      check_pool2d({.x = {1, 3, 7, 6},
                    .y = {1, 3, 4, 3},
                    .type = type,
                    .ceil_mode = true,
                    .exclusive = exclusive});
      // 6 rows, padding 1: a fourth window would begin behind the image.
      check_pool2d({.x = {1, 16, 6, 6},
                    .y = {1, 16, 4, 4},
                    .type = type,
                    .kernel = {2, 2},
                    .paddings = {1, 1},
                    .ceil_mode = true,
                    .exclusive = exclusive,
                    .layout = blocked16({1, 16, 6, 6})});
      check_pool2d({.x = {1, 3, 4, 4},
                    .y = {1, 3, 2, 2},
                    .type = type,
                    .kernel = {2, 2},
                    .strides = {3, 3},
                    .ceil_mode = true,
                    .exclusive = exclusive});
    }
  }
}

TEST(Pool2d, Global_TakesTheWholeImage) {
  for (const std::string type : {"max", "avg"}) {
    check_pool2d({.x = {2, 5, 7, 3}, .y = {2, 5, 1, 1}, .type = type, .global = true});
    const Shape x{2, 20, 7, 7};
    check_pool2d(
        {.x = x, .y = {2, 20, 1, 1}, .type = type, .global = true, .layout = blocked16(x)});
  }
}

TEST(Pool2d, WithoutMask_MatchesReference) {
  const Pool2dCase c{.x = {2, 20, 6, 4}, .y = {2, 20, 3, 2}};
  check_op({.type = "pool2d",
            .attributes = {{"kernel", c.kernel}, {"strides", c.strides}},
            .inputs = {{.shape = c.x}},
            .reference =
                [&](const std::vector<Values>& in) {
                  return std::vector<Values>{naive_pool2d(c, in[0])};
                },
            .check_gradient = false,
            .optional_outputs = false});
}

TEST(Pool2d, PaddingOfMoreThanHalfTheKernel_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 3, 8, 8});
  EXPECT_THROW(program.emit(section, "pool2d", {x},
                            {{"kernel", std::vector<int64_t>{3, 3}},
                             {"paddings", std::vector<int64_t>{2, 2}}}),
               Error);
}

}  // namespace
}  // namespace fleet
