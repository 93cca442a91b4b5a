#include "viewing/runs/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/control/viewing/runs/run_folder_files.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

std::vector<double> steps_of(const Points& points) {
  std::vector<double> steps;
  for (const CurvePoint& point : points) steps.push_back(point.step);
  return steps;
}

TEST(RunHistory, Events_AreSorted) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(101, 0, "2.5") +
                                 test_line(102, 1, "0.5") + summary_line(103, 1));
  run.write("config.txt", "train.seed = 1  (default)\nmodel.name = \"a (b)\"  (job.json)\n");
  const RunHistory history = read_run_history(run.path());
  EXPECT_EQ(history.lines, 4);
  EXPECT_EQ(history.unreadable, 0);
  EXPECT_EQ(history.train.at("loss").front().value, 2.5);
  EXPECT_EQ(history.tests.size(), 1u);
  EXPECT_TRUE(history.summary);
  EXPECT_EQ(history.begin, 100);
  EXPECT_EQ(history.end, 103);
  EXPECT_TRUE(history.settings.at("train.seed").is_default());
  EXPECT_EQ(history.settings.at("model.name").value, "\"a (b)\"");
  EXPECT_EQ(history.settings.at("model.name").origin, "job.json");
}

TEST(RunHistory, LineThatACrashCutOff_IsCountedOnly) {
  const RunFiles run;
  run.write("metrics.jsonl",
            start_line(100, 0) + train_line(101, 0, "2.5") + R"({"event":"train","time":102,"st)");
  const RunHistory history = read_run_history(run.path());
  EXPECT_EQ(history.unreadable, 1);
  EXPECT_EQ(history.train.at("loss").size(), 1u);
  EXPECT_FALSE(history.summary);
}

TEST(RunHistory, ValuesThatAreNotFinite_AreNaN) {
  const RunFiles run;
  run.write("metrics.jsonl", train_line(1, 0, "null") + train_line(2, 1, "NaN") +
                                 train_line(3, 2, "-Infinity") + train_line(4, 3, "1e308") +
                                 train_line(5, 4, "0.5", R"(,"note":"NaN \"Infinity")"));
  const Points loss = read_run_history(run.path()).train.at("loss");
  ASSERT_EQ(loss.size(), 5u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isnan(loss[i].value)) << i;
  EXPECT_EQ(loss[4].value, 0.5);
}

TEST(RunHistory, ResumedRun_KeepsEachStepOnce) {
  const RunFiles run;
  run.write("metrics.jsonl", start_line(100, 0) + train_line(101, 0, "3") +
                                 train_line(102, 1, "2") + train_line(103, 2, "1") +
                                 start_line(150, 1) + train_line(151, 1, "2") +
                                 train_line(152, 2, "1"));
  const RunHistory history = read_run_history(run.path());
  EXPECT_THAT(steps_of(history.train.at("loss")), ElementsAre(0, 1, 2));
  EXPECT_THAT(history.resumes, ElementsAre(1));
  EXPECT_EQ(history.repeated_steps, 2);
  EXPECT_EQ(history.between_starts, 47);
}

TEST(RunHistory, RankLines_BecomeIntervals) {
  const RunFiles run;
  run.write(
      "metrics.jsonl",
      start_line(100, 0) +
          R"({"event":"ranks","time":105,"step":5,"batch_time":[1,2],"data_time":[0.1,null]})" +
          "\n");
  const RunHistory history = read_run_history(run.path());
  ASSERT_EQ(history.ranks.size(), 1u);
  EXPECT_EQ(history.ranks[0].begin, 100);
  EXPECT_EQ(history.ranks[0].end, 105);
  EXPECT_TRUE(std::isnan(history.ranks[0].data_time[1]));
  EXPECT_EQ(history.ranks[0].wait_time.size(), 2u);
}

TEST(RunHistory, LinesOfAnyKind_AreSurvived) {
  const RunFiles run;
  run.write("metrics.jsonl", std::string("[]\n17\n\"x\"\n{}\n{\"event\":3}\n\xff\xfe\n\n") +
                                 "{\"event\":\"train\",\"step\":{}}\n" + std::string(1, '\0') +
                                 "\n{\"event\":\"ranks\",\"batch_time\":{}}\n" +
                                 std::string(100'000, '[') + "\n");
  const RunHistory history = read_run_history(run.path());
  EXPECT_EQ(history.lines, 10);
  EXPECT_TRUE(history.train.empty());
}

TEST(RunFolder, AnotherFolder_IsRefused) {
  const RunFiles run;
  EXPECT_THAT(thrown_by([&] { check_run_folder(run.path()); }), IsUsageError(run.path()));
  EXPECT_THAT(thrown_by([&] { check_run_folder("/nowhere/at/all"); }),
              IsUsageError("/nowhere/at/all"));
  run.write("config.txt", "");
  EXPECT_NO_THROW(check_run_folder(run.path()));
}

}  // namespace
}  // namespace fleet
