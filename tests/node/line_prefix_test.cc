#include "node/line_prefix.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fleet {
namespace {

TEST(LinePrefix, WholeLines_HoweverTheyAreCut) {
  const std::string output = "first\n\nsecond\nlast";
  for (size_t size = 1; size <= output.size(); ++size) {
    LinePrefix lines("[1] ");
    std::string all;
    for (size_t at = 0; at < output.size(); at += size) all += lines.pass(output.substr(at, size));
    EXPECT_EQ(all, "[1] first\n[1] \n[1] second\n") << size;
    EXPECT_EQ(lines.rest(), "[1] last\n");
    EXPECT_EQ(lines.rest(), "");
  }
}

TEST(LinePrefix, Bars_AreNotTorn) {
  LinePrefix lines("[1] ");
  EXPECT_EQ(lines.pass("10%"), "");
  EXPECT_EQ(lines.pass("\r20%\r"), "[1] 10%\r[1] 20%\r");
  EXPECT_EQ(lines.pass("windows\r\nnext\n"), "[1] windows\r\n[1] next\n");
}

TEST(LinePrefix, EndlessLine_IsCut) {
  LinePrefix lines("[1] ");
  std::string all;
  for (int i = 0; i < 100; ++i) all += lines.pass(std::string(4096, 'x'));
  all += lines.rest();
  EXPECT_EQ(std::count(all.begin(), all.end(), 'x'), 409'600);
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 4);
}

}  // namespace
}  // namespace fleet
