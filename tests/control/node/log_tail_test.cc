#include <gtest/gtest.h>

#include "node/line_splitter.h"

namespace fleet {
namespace {

TEST(LogTail, FewLines_AreAllKept) {
  LogTail tail;
  tail.add("one\n  two\nthr");
  tail.add("ee\n");
  EXPECT_EQ(tail.shown(), "one\n  two\nthree");
}

TEST(LogTail, ManyLines_OnlyTheLastOnesAreGiven) {
  LogTail tail;
  for (int i = 0; i < 100; ++i) tail.add("line " + std::to_string(i) + "\n");
  EXPECT_EQ(last_lines(tail.shown(), 2), "line 98\nline 99");
}

TEST(LogTail, MoreThanItHolds_NoTornFirstLine) {
  LogTail tail(64);
  for (int i = 0; i < 1000; ++i) tail.add("line " + std::to_string(1000 + i) + "\n");
  const std::string last = tail.shown();
  EXPECT_TRUE(last.starts_with("line ")) << last;
  EXPECT_TRUE(last.ends_with("line 1999"));
  EXPECT_LE(last.size(), 128u);
}

TEST(LogTail, LineLongerThanItHolds_ItsEndIsGiven) {
  LogTail tail(64);
  const std::string end = "and the end";
  tail.add("before\n" + std::string(5000, 'x') + end + "\n");
  const std::string last = tail.shown();
  EXPECT_TRUE(last.starts_with("...xxx")) << last;
  EXPECT_TRUE(last.ends_with("x" + end)) << last;
  tail.add("after\n");
  EXPECT_EQ(tail.shown(), "after");
}

TEST(LogTail, ProgressBarLongerThanItHolds_OnlyItsLastStateCounts) {
  LogTail tail(64);
  for (int i = 0; i < 1000; ++i) tail.add(std::to_string(i) + " steps\r");
  tail.add("1000 steps");
  EXPECT_EQ(tail.shown(), "1000 steps");
}

TEST(LogTail, UnfinishedLine_IsGiven) {
  LogTail tail;
  tail.add("terminate called");
  EXPECT_EQ(tail.shown(), "terminate called");
}

TEST(LogTail, ProgressBar_OnlyItsLastStateCounts) {
  LogTail tail;
  tail.add("10%\r20%\r30%\nnext\r\n");
  EXPECT_EQ(tail.shown(), "30%\nnext");
}

TEST(LogTail, WhatATerminalObeys_IsResolved) {
  LogTail tail;
  tail.add("\033]0;title\007loss 1\rloss 2\n\033[31mred\033[0m\n\033[?25h\n");
  EXPECT_EQ(tail.shown(), "loss 2\nred");
  EXPECT_EQ(tail.shown(true), "loss 2\n\033[31mred\033[0m");
}

TEST(LogTail, Nothing_IsEmpty) {
  EXPECT_EQ(LogTail().shown(), "");
  LogTail blank;
  blank.add("\n\n");
  EXPECT_EQ(blank.shown(), "");
}

}  // namespace
}  // namespace fleet
