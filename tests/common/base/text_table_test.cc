#include "base/text_table.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(Aligned, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(format_table({{"a", "bb", "c"}, {"aaa", "", "cc"}, {"x"}}, "> "),
            "> a    bb  c\n> aaa      cc\n> x\n");
  EXPECT_EQ(format_table({}), "");
}

TEST(Aligned, NothingIsLeftAtTheEndOfALine) {
  EXPECT_EQ(format_table({{"a", ""}, {"", ""}}), "a\n\n");
}

}  // namespace
}  // namespace fleet
