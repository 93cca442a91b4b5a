#include "base/ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace fleet {
namespace {

TEST(RangesText, JoinsNeighbours) {
  EXPECT_EQ(ranges_text(std::vector<int>{3}), "3");
  EXPECT_EQ(ranges_text(std::vector<int>{0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(ranges_text({}), "");
}

TEST(ParseRange, IsANumberOrTwo) {
  long long first = 0, last = 0;
  EXPECT_TRUE(parse_range("3", &first, &last));
  EXPECT_EQ(std::pair(first, last), std::pair(3LL, 3LL));
  EXPECT_TRUE(parse_range("0-12", &first, &last));
  EXPECT_EQ(std::pair(first, last), std::pair(0LL, 12LL));
  for (const std::string text : {"", "-", "3-", "a", "1-b", "3-2", "1-2-3"}) {
    EXPECT_FALSE(parse_range(text, &first, &last)) << text;
  }
}

}  // namespace
}  // namespace fleet
