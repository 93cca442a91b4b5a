#include "backend/cuda/layouts.h"

#include <gtest/gtest.h>

namespace fleet::cuda {
namespace {

TEST(ChannelsLast, FewChannels_ArePaddedAndInnermost) {
  const Layout layout = channels_last({2, 3, 4, 5}, 8);
  EXPECT_EQ(layout.padded(), (Shape{2, 8, 4, 5}));
  EXPECT_EQ(layout.elements(), 2 * 8 * 4 * 5);
  const int64_t at[] = {1, 2, 3, 4};
  EXPECT_EQ(layout.offset(at), ((1 * 4 + 3) * 5 + 4) * 8 + 2);
}

TEST(ChannelsLast, WholeBlocks_AreTheCommonLayout) {
  EXPECT_EQ(channels_last({2, 16, 4, 5}, 8), Layout::channels_last({2, 16, 4, 5}));
  EXPECT_EQ(channels_last({2, 3, 4, 5}), Layout::channels_last({2, 3, 4, 5}));
}

TEST(ChannelBlock, OnlyFewChannels_ArePadded) {
  EXPECT_EQ(channel_block(3, 1, DType::kFloat16), 8);
  EXPECT_EQ(channel_block(3, 1, DType::kBFloat16), 8);
  EXPECT_EQ(channel_block(3, 1, DType::kFloat32), 4);
  EXPECT_EQ(channel_block(4, 1, DType::kFloat32), 1);
  EXPECT_EQ(channel_block(20, 1, DType::kFloat16), 1);
  EXPECT_EQ(channel_block(3, 3, DType::kFloat16), 1);
}

}  // namespace
}  // namespace fleet::cuda
