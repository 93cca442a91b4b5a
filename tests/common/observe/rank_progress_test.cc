#include "observe/rank_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/file.h"

namespace fleet {
namespace {

TEST(RankProgress, NothingDone_SaysNothing) {
  ProgressReader reader;
  const ProgressWriter writer(reader.path());
  EXPECT_FALSE(reader.read());
}

TEST(RankProgress, Steps_AreSeen) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.step_done(101, 2, {.waited = 5'000});
  writer.step_done(102, 2, {.waited = 7'000, .samples = 64});
  writer.saved(102);
  writer.tick();
  const auto seen = reader.read();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->ticks, 4);
  EXPECT_EQ(seen->steps, 2);
  EXPECT_EQ(seen->step, 102);
  EXPECT_EQ(seen->epoch, 2);
  EXPECT_EQ(seen->checkpoint, 102);
  EXPECT_EQ(seen->totals.waited, 7'000);
  EXPECT_EQ(seen->totals.samples, 64);
  EXPECT_EQ(seen->totals.exposed, -1);
  EXPECT_GT(seen->step_at_ns, 0);
}

TEST(RankProgress, Stage_ComesWithTheNextProgress) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.in_pipeline(1, 4);
  EXPECT_FALSE(reader.read());
  writer.tick();
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->stage, 1);
  EXPECT_EQ(reader.read()->stages, 4);
}

TEST(RankProgress, LostSamples_AreOfAPlaceThatWasTaken) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.tick();
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->repeated_samples, -1);
  writer.took_place(64, 32);
  writer.tick();
  EXPECT_EQ(reader.read()->repeated_samples, 64);
  EXPECT_EQ(reader.read()->lost_samples, 32);
}

TEST(RankProgress, PlanAndLoss_ComeWithTheNextStep) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.planned(900, 4);
  writer.step_done(1, 0, {});
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->target, 900);
  EXPECT_EQ(reader.read()->data_threads, 4);
  EXPECT_EQ(reader.read()->losses, 0);
  EXPECT_EQ(reader.read()->accuracy, -1);
  EXPECT_EQ(reader.read()->evaluation_accuracy, -1);
  writer.fetched(0.5, 0.25);
  writer.evaluated(0.75);
  EXPECT_EQ(reader.read()->losses, 0);
  writer.step_done(2, 0, {});
  EXPECT_EQ(reader.read()->losses, 1);
  EXPECT_EQ(reader.read()->loss, 0.5);
  EXPECT_EQ(reader.read()->accuracy, 0.25);
  EXPECT_EQ(reader.read()->evaluation_accuracy, 0.75);
}

TEST(RankProgress, NoCheckpoint_IsMinusOne) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.tick();
  EXPECT_EQ(reader.read()->checkpoint, -1);
}

TEST(RankProgress, Finished_KeepsItsStepsWithoutTicks) {
  ProgressReader reader;
  ProgressWriter writer(reader.path());
  writer.finish();
  EXPECT_FALSE(reader.read());
  writer.step_done(7, 0, {});
  writer.finish();
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.read()->ticks, 0);
  EXPECT_EQ(reader.read()->step, 7);
}

TEST(RankProgress, FileThatNoLauncherMade_StaysAsItIs) {
  ProgressWriter writer("/nowhere/at/all");
  writer.step_done(1, 0, {});
  const std::string path = ::testing::TempDir() + "/rank_progress_test";
  const std::string before(1000, 'x');
  write_file_atomically(path, before);
  ProgressWriter(path).step_done(1, 0, {});
  EXPECT_EQ(read_file(path), before);
  std::filesystem::remove(path);
}

TEST(RankProgress, ReadWhileWritten_IsOfOneMoment) {
  ProgressReader reader;
  std::atomic<bool> done{false};
  std::thread rank([&] {
    ProgressWriter writer(reader.path());
    for (int64_t step = 1; step <= 100'000; ++step) writer.step_done(step, step, {.reading = step});
    done = true;
  });
  int64_t last = 0;
  while (!done) {
    const auto seen = reader.read();
    if (!seen) continue;
    EXPECT_EQ(seen->step, seen->epoch);
    EXPECT_EQ(seen->step, seen->totals.reading);
    EXPECT_GE(seen->step, last);
    last = seen->step;
  }
  rank.join();
  EXPECT_EQ(reader.read()->step, 100'000);
}

}  // namespace
}  // namespace fleet
