#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/image_layouts.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

// x as [outer, size, inner].
void check_slice(const Shape& shape, int64_t axis, int64_t start, int64_t end,
                 const std::optional<Layout>& layout = std::nullopt) {
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < axis; ++d) outer *= shape[d];
  for (int d = static_cast<int>(axis) + 1; d < shape.rank(); ++d) inner *= shape[d];
  const int64_t size = shape[static_cast<int>(axis)];
  check_op({.type = "slice",
            .attributes = {{"axis", axis}, {"start", start}, {"end", end}},
            .inputs = {{.shape = shape,
                        .kind = layout ? VarKind::kState : VarKind::kFeed,
                        .layout = layout}},
            .reference =
                [=](const std::vector<Values>& in) {
                  // It also runs for what the op then refuses.
                  const int64_t first = std::max<int64_t>(start, 0), last = std::min(end, size);
                  Values y;
                  for (int64_t o = 0; o < outer; ++o) {
                    for (int64_t i = first * inner; i < last * inner; ++i) {
                      y.push_back(in[0][o * size * inner + i]);
                    }
                  }
                  return std::vector<Values>{y};
                },
            .tolerance = 0});
}

TEST(Slice, EachAxis_MatchesReference) {
  check_slice({4, 3, 5}, 0, 1, 3);
  check_slice({4, 3, 5}, 1, 0, 1);
  check_slice({4, 3, 5}, 2, 2, 5);
  check_slice({4, 3, 5}, 1, 0, 3);
}

TEST(Slice, InLayoutsOfImages_MatchesReference) {
  const Shape x{2, 48, 3, 2}, padded{2, 20, 3, 2};
  for (const Layout& layout : {blocked16(x), Layout::channels_last(x)}) {
    check_slice(x, 1, 16, 48, layout);
    check_slice(x, 1, 32, 48, layout);
    check_slice(x, 1, 8, 24, layout);  // inside blocks
    check_slice(x, 0, 1, 2, layout);
    check_slice(x, 2, 1, 3, layout);
  }
  check_slice(padded, 1, 0, 16, blocked16(padded));
  check_slice(padded, 0, 1, 2, blocked16(padded));
}

TEST(Slice, OutsideOrEmpty_IsRefused) {
  EXPECT_THROW(check_slice({4, 3}, 0, 2, 5), Error);
  EXPECT_THROW(check_slice({4, 3}, 0, 2, 2), Error);
  EXPECT_THROW(check_slice({4, 3}, 0, -1, 2), Error);
}

}  // namespace
}  // namespace fleet
