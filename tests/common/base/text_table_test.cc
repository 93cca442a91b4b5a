#include "base/text_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(Aligned, WideCharacters_TakeTwoColumns) {
  EXPECT_EQ(format_table({{"\u6a21\u578b", "a"}, {"abcd", "b"}}), "\u6a21\u578b  a\nabcd  b\n");
}

// Three columns, of 4, 8 and 6, in 22 columns of a terminal.
std::vector<std::string> fitted(size_t width, std::vector<size_t>* columns = nullptr) {
  const FittedTable table = fitted_table(
      {{.title = "NAME", .importance = 9},
       {.title = "PATH", .importance = 5, .least = 6, .path = true},
       {.title = "COUNT", .importance = 7, .right = true}},
      {{{"a", ""}, {"/tmp/abc", ""}, {"7", ""}}, {{"bb", ""}, {"", ""}, {"123456", "31"}}}, width);
  if (columns) *columns = table.columns;
  return table.lines;
}

TEST(FittedTable, AnyWidth_KeepsEverything) {
  const std::vector<std::string> all = {"NAME  PATH       COUNT", "a     /tmp/abc       7",
                                        "bb              \x1b[31m123456\x1b[0m"};
  EXPECT_EQ(fitted(0), all);
  EXPECT_EQ(fitted(22), all);
}

TEST(FittedTable, TooWide_CutsTheLeastImportantCellsThenLeavesColumnsOut) {
  EXPECT_EQ(fitted(20)[1], "a     ...abc       7");
  std::vector<size_t> columns;
  EXPECT_EQ(fitted(19, &columns)[1], "a          7");
  EXPECT_EQ(columns, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(fitted(3), (std::vector<std::string>{"...", "a", "bb"}));
}

}  // namespace
}  // namespace fleet
