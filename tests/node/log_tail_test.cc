#include "node/log_tail.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(LogTail, FewLines_AreAllKept) {
  LogTail tail;
  tail.add("one\n  two\nthr");
  tail.add("ee\n");
  EXPECT_EQ(tail.last(20), "one\n  two\nthree");
}

TEST(LogTail, ManyLines_OnlyTheLastOnesAreGiven) {
  LogTail tail;
  for (int i = 0; i < 100; ++i) tail.add("line " + std::to_string(i) + "\n");
  EXPECT_EQ(tail.last(2), "line 98\nline 99");
}

TEST(LogTail, MoreThanItHolds_NoTornFirstLine) {
  LogTail tail(64);
  for (int i = 0; i < 1000; ++i) tail.add("line " + std::to_string(1000 + i) + "\n");
  const std::string last = tail.last(1000);
  EXPECT_TRUE(last.starts_with("line ")) << last;
  EXPECT_TRUE(last.ends_with("line 1999"));
  EXPECT_LE(last.size(), 128u);
}

TEST(LogTail, LineLongerThanItHolds_ItsEndIsGiven) {
  LogTail tail(64);
  const std::string end = "and the end";
  tail.add("before\n" + std::string(5000, 'x') + end + "\n");
  const std::string last = tail.last(20);
  EXPECT_TRUE(last.starts_with("...xxx")) << last;
  EXPECT_TRUE(last.ends_with("x" + end)) << last;
  tail.add("after\n");
  EXPECT_EQ(tail.last(20), "after");
}

TEST(LogTail, ProgressBarLongerThanItHolds_OnlyItsLastStateCounts) {
  LogTail tail(64);
  for (int i = 0; i < 1000; ++i) tail.add(std::to_string(i) + " steps\r");
  tail.add("1000 steps");
  EXPECT_EQ(tail.last(20), "1000 steps");
}

TEST(LogTail, UnfinishedLine_IsGiven) {
  LogTail tail;
  tail.add("terminate called");
  EXPECT_EQ(tail.last(20), "terminate called");
}

TEST(LogTail, ProgressBar_OnlyItsLastStateCounts) {
  LogTail tail;
  tail.add("10%\r20%\r30%\nnext\r\n");
  EXPECT_EQ(tail.last(20), "30%\nnext");
}

TEST(LogTail, Nothing_IsEmpty) {
  EXPECT_EQ(LogTail().last(20), "");
  LogTail blank;
  blank.add("\n\n");
  EXPECT_EQ(blank.last(20), "");
}

}  // namespace
}  // namespace fleet
