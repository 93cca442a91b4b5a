#include "base/ranges.h"

#include <gtest/gtest.h>

#include <vector>

namespace fleet {
namespace {

TEST(RangesText, JoinsNeighbours) {
  EXPECT_EQ(ranges_text(std::vector<int>{3}), "3");
  EXPECT_EQ(ranges_text(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ranges_text({}), "");
}

}  // namespace
}  // namespace fleet
