#include "tensor/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fleet {
namespace {

TEST(Layout, Text_NamesOrderAndBlocks) {
  const Shape shape{2, 20, 3, 3};
  EXPECT_EQ(Layout::plain(shape).text(), "abcd");
  EXPECT_EQ(Layout::channels_last(shape).text(), "acdb");
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {32 * 9, 9 * 16, 3 * 16, 16}, {{1, 16}});
  EXPECT_EQ(blocked.text(), "aBcd16b");
  EXPECT_EQ(blocked.elements(), 2 * 32 * 9);
  EXPECT_TRUE(Layout::plain(shape).is_plain());
  EXPECT_FALSE(blocked.is_plain());
  EXPECT_TRUE(Layout::channels_last({4, 7, 1, 1}).is_plain());
}

TEST(Layout, Relayout_ThereAndBack_IsIdentityAndPadsWithZeros) {
  const Shape shape{2, 20, 2, 3};
  const Layout plain = Layout::plain(shape);
  const Layout blocked = Layout::blocked({2, 32, 2, 3}, {32 * 6, 6 * 16, 3 * 16, 16}, {{1, 16}});
  std::vector<float> source(plain.elements()), middle(blocked.elements(), 9.f), back(source.size());
  std::iota(source.begin(), source.end(), 1.f);
  relayout(shape, 4, plain, source.data(), blocked, middle.data());
  relayout(shape, 4, blocked, middle.data(), plain, back.data());
  EXPECT_EQ(back, source);
  EXPECT_EQ(std::accumulate(middle.begin(), middle.end(), 0.0),
            std::accumulate(source.begin(), source.end(), 0.0));
  EXPECT_EQ(middle[blocked.offset(std::array<int64_t, 4>{1, 17, 1, 2})],
            source[plain.offset(std::array<int64_t, 4>{1, 17, 1, 2})]);
}

TEST(Layout, TwoBlocksOfOneAxisPair_OffsetFollowsOneDnn) {  // OIhw16i16o
  const Layout layout = Layout::blocked({32, 32, 1, 1}, {512, 256, 256, 256}, {{1, 16}, {0, 16}});
  EXPECT_EQ(layout.text(), "ABcd16b16a");
  EXPECT_EQ(layout.offset(std::array<int64_t, 4>{17, 18, 0, 0}), 512 + 256 + 2 * 16 + 1);
}

}  // namespace
}  // namespace fleet
