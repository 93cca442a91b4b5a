#include "base/text_table.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(Aligned, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(aligned({{"a", "bb", "c"}, {"aaa", "", "cc"}, {"x"}}, "> "),
            "> a    bb  c\n> aaa      cc\n> x\n");
  EXPECT_EQ(aligned({}), "");
}

TEST(Aligned, NothingIsLeftAtTheEndOfALine) { EXPECT_EQ(aligned({{"a", ""}, {"", ""}}), "a\n\n"); }

}  // namespace
}  // namespace fleet
