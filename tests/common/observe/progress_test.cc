#include "observe/progress.h"

#include <gmock/gmock.h>

namespace fleet {
namespace {

using ::testing::HasSubstr;

ProgressState half() {
  return {.title = "Epoch 1 (of 3)", .done = 120, .total = 240, .elapsed = 12, .note = "loss 0.41"};
}

TEST(ProgressBar, HalfDone_ShowsBarCountsAndTimeLeft) {
  EXPECT_EQ(progress_bar(half(), 67),
            "Epoch 1 (of 3) [========>       ] 120/240  50%  ETA 0:12  loss 0.41");
}

TEST(ProgressBar, AnyWidth_NeverExceedsIt) {
  for (int width = 0; width < 200; ++width) {
    EXPECT_LE(progress_bar(half(), width).size(), static_cast<size_t>(width));
  }
}

TEST(ProgressBar, NarrowTerminal_DropsTheBarFirst) {
  const std::string text = progress_bar(half(), 45);
  EXPECT_EQ(text.find('['), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr("ETA 0:12"));
}

TEST(ProgressBar, Finished_IsFull) {
  ProgressState state = half();
  state.done = 240;
  EXPECT_THAT(progress_bar(state, 70), HasSubstr("=] 240/240  100%  ETA 0:00"));
}

TEST(SecondsLeft, ResumedEpoch_CountsOnlyTheStepsOfThisRun) {
  ProgressState state = half();
  state.done_before = 100;  // 20 steps in 12 s, 120 left
  EXPECT_DOUBLE_EQ(seconds_left(state), 72);
}

TEST(SecondsLeft, NothingDoneOrTotalUnknown_IsNegative) {
  EXPECT_LT(seconds_left({.total = 5}), 0);
  EXPECT_LT(seconds_left({.done = 5}), 0);
  EXPECT_EQ(progress_text({.title = "Read", .done = 5}), "Read: 5");
  EXPECT_EQ(progress_text({.title = "Read", .total = 5}), "Read: 0/5 (0%), ETA -:--");
}

TEST(Progress, PlainOutput_OneLineAnInterval) {
  double now = 0;
  std::string output;
  Progress progress({.plain_seconds = 10,
                     .clock = [&] { return now; },
                     .write = [&](auto text) { output += text; }});
  progress.start("Epoch 0 (of 1)", 100);
  for (int step = 1; step <= 25; ++step) {
    now += 1;
    progress.update(step, "loss 1");
  }
  EXPECT_EQ(output,
            "Epoch 0 (of 1): 10/100 (10%), ETA 1:30, loss 1\n"
            "Epoch 0 (of 1): 20/100 (20%), ETA 1:20, loss 1\n");
}

TEST(Progress, Terminal_RedrawsOnOneLineAndMakesRoomForOutput) {
  double now = 0;
  std::string output;
  Progress progress(
      {.width = 60, .clock = [&] { return now; }, .write = [&](auto text) { output += text; }});
  progress.start("E", 2);
  now = 1;
  progress.update(1, "");
  progress.update(1, "too soon to be drawn again");
  EXPECT_EQ(output.find("too soon"), std::string::npos) << output;
  EXPECT_EQ(output.find('\n'), std::string::npos) << output;
  output.clear();
  progress.print("a line");
  EXPECT_TRUE(output.starts_with("\r\033[Ka line\n\rE [")) << output;
  output.clear();
  progress.finish();
  EXPECT_EQ(output, "\r\033[K");
  progress.finish();
  EXPECT_EQ(output, "\r\033[K");
}

}  // namespace
}  // namespace fleet
