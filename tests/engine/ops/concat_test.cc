#include <gtest/gtest.h>

#include "tests/engine/ops/image_layouts.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

// Tensors [outer, size * inner] side by side.
Values naive_concat(const std::vector<Values>& in, int64_t outer) {
  Values y;
  for (int64_t o = 0; o < outer; ++o) {
    for (const Values& x : in) {
      const int64_t row = static_cast<int64_t>(x.size()) / outer;
      y.insert(y.end(), x.begin() + o * row, x.begin() + (o + 1) * row);
    }
  }
  return y;
}

void check_concat(int64_t axis, const std::vector<Shape>& shapes, int64_t outer) {
  std::vector<CheckInput> inputs;
  for (const Shape& shape : shapes) inputs.push_back({.shape = shape});
  check_op({.type = "concat",
            .attributes = {{"axis", axis}},
            .inputs = inputs,
            .reference =
                [&](const std::vector<Values>& in) {
                  return std::vector<Values>{naive_concat(in, outer)};
                },
            .tolerance = 0});
}

TEST(Concat, EachAxis_MatchesReference) {
  check_concat(0, {{2, 3}, {1, 3}}, 1);
  check_concat(1, {{2, 3, 2}, {2, 1, 2}, {2, 4, 2}}, 2);
  check_concat(2, {{2, 3, 2}, {2, 3, 1}}, 6);
  check_concat(1, {{2, 3}}, 2);
}

// Channels that fill blocks, and some that do not.
TEST(Concat, InLayoutsOfImages_MatchesReference) {
  for (const int64_t channels : {16, 20}) {
    for (const int64_t axis : {0, 1, 2}) {
      const Shape x{2, channels, 3, 2}, y{2, axis == 1 ? 32 : channels, 3, 2};
      for (const Layout& first : {blocked16(x), Layout::channels_last(x)}) {
        for (const Layout& second : {blocked16(y), Layout::plain(y)}) {
          check_op({.type = "concat",
                    .attributes = {{"axis", axis}},
                    .inputs = {{.shape = x, .kind = VarKind::kState, .layout = first},
                               {.shape = y, .kind = VarKind::kState, .layout = second}},
                    .reference =
                        [&](const std::vector<Values>& in) {
                          int64_t outer = 1;
                          for (int d = 0; d < axis; ++d) outer *= x[d];
                          return std::vector<Values>{naive_concat(in, outer)};
                        },
                    .tolerance = 0});
        }
      }
    }
  }
}

TEST(Concat, OneGradientWanted_MatchesReference) {
  check_op({.type = "concat",
            .inputs = {{.shape = {2, 3}, .differentiate = false}, {.shape = {2, 2}}},
            .reference = [](const std::vector<Values>& in) {
              return std::vector<Values>{naive_concat(in, 2)};
            }});
}

TEST(Concat, OtherExtentsDiffer_IsRefused) {
  EXPECT_THROW(check_concat(0, {{2, 3}, {2, 4}}, 1), Error);
}

}  // namespace
}  // namespace fleet
