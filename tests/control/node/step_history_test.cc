#include "node/step_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kOneSecond = 1'000'000'000;

struct StepHistoryTest : ::testing::Test {
  StepHistoryTest() {
    std::string pattern = ::testing::TempDir() + "fleet_history.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    path = folder + "/metrics.jsonl";
  }
  ~StepHistoryTest() override { std::filesystem::remove_all(folder); }

  // `second`: since the tests began.
  static StepHistory::Moment at(int64_t second) {
    return {second * kOneSecond, 1e9 + static_cast<double>(second)};
  }
  void begin(bool overwrite = false) {
    history.begin(path, 4, overwrite, at(0));
    steps.clear();
  }
  void report(int rank, int64_t second, const ReportedStep& step) {
    steps[rank].add(step, second * kOneSecond);
    history.add(rank, step, *steps[rank].progress(), second * kOneSecond, at(second + 1));
  }
  std::vector<Json> lines(const std::string& of = "") {
    history.flush();
    std::vector<Json> all;
    const std::string text = read_file(of.empty() ? path : of);
    for (const std::string_view line : lines_of(text)) {
      if (!line.empty()) all.push_back(Json::parse(line));
    }
    return all;
  }
  std::vector<std::string> events() {
    std::vector<std::string> all;
    for (const Json& line : lines()) all.push_back(line.at("event").get<std::string>());
    return all;
  }

  std::string folder, path;
  StepHistory history;
  std::map<int, ReportedSteps> steps;
};

TEST_F(StepHistoryTest, NoReport_MakesNoFile) {
  begin();
  history.add_ranks({}, at(10));
  history.on_rank_ended(0, true, at(10));
  history.flush();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(StepHistoryTest, Reports_BecomeEventsOfARun) {
  begin();
  report(0, 5, {.step = 10, .samples = 320, .loss = 2.5, .others = {{"lr", 0.1}}});
  report(0, 7, {.step = 20, .epoch = 1, .samples = 640, .loss = 1.5});
  history.on_rank_ended(0, true, at(9));
  const std::vector<Json> all = lines();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].at("event"), "start");
  EXPECT_EQ(all[0].at("ranks"), 4);
  EXPECT_EQ(all[0].at("step"), 10);
  EXPECT_EQ(all[0].at("time"), 1e9 + 5);
  EXPECT_EQ(all[0].at("log_dir"), folder);
  EXPECT_EQ(all[1].at("event"), "train");
  EXPECT_EQ(all[1].at("loss"), 2.5);
  EXPECT_EQ(all[1].at("lr"), 0.1);
  EXPECT_FALSE(all[1].contains("batch_time"));
  EXPECT_EQ(all[2].at("step"), 20);
  EXPECT_DOUBLE_EQ(all[2].at("batch_time").get<double>(), 0.2);
  EXPECT_DOUBLE_EQ(all[2].at("speed").get<double>(), 160);
  EXPECT_EQ(all[3].at("event"), "summary");
  EXPECT_EQ(all[3].at("steps"), 20);
  EXPECT_DOUBLE_EQ(all[3].at("start_seconds").get<double>(), 5);
  EXPECT_DOUBLE_EQ(all[3].at("training_seconds").get<double>(), 2);
}

TEST_F(StepHistoryTest, Curves_AreOfTheFirstRankThatReports) {
  begin();
  report(3, 1, {.step = 1});
  report(0, 2, {.step = 1});
  report(3, 3, {.step = 2});
  history.on_rank_ended(0, true, at(4));
  EXPECT_THAT(events(), ElementsAre("start", "train", "train"));
}

TEST_F(StepHistoryTest, FailedRank_LeavesNoSummary) {
  begin();
  report(0, 1, {.step = 1});
  history.on_rank_ended(0, false, at(2));
  EXPECT_THAT(events(), ElementsAre("start", "train"));
}

TEST_F(StepHistoryTest, LowerStepOrRestart_IsAStartInTheSameFile) {
  begin();
  report(0, 1, {.step = 5});
  report(0, 2, {.step = 3});
  begin();
  report(0, 3, {.step = 4});
  EXPECT_THAT(events(), ElementsAre("start", "train", "start", "train", "start", "train"));
}

TEST_F(StepHistoryTest, FileOfAnEarlierJob_IsSetAsideOrRemoved) {
  std::ofstream(path) << "{\"event\":\"old\"}\n";
  begin();
  report(0, 1, {.step = 1});
  EXPECT_THAT(events(), ElementsAre("start", "train"));
  EXPECT_EQ(lines(path + ".1").at(0).at("event"), "old");
  history = {};
  begin(true);
  report(0, 1, {.step = 1});
  EXPECT_THAT(events(), ElementsAre("start", "train"));
  EXPECT_FALSE(std::filesystem::exists(path + ".2"));
}

TEST_F(StepHistoryTest, AllRanks_HaveALineEveryFewSeconds) {
  begin();
  std::map<int, RankProgress> ranks;
  for (int second = 0; second <= 10; ++second) {
    for (const int rank : {0, 2}) {
      report(rank, second, {.step = second * 10 / (rank + 1), .data_time = 0.01});
      ranks[rank] = *steps[rank].progress();
    }
    history.add_ranks(ranks, at(second));
  }
  int count = 0;
  for (const Json& line : lines()) {
    if (line.at("event") != "ranks") continue;
    ++count;
    EXPECT_EQ(line.at("batch_time").size(), 3u);
    EXPECT_TRUE(line.at("batch_time").at(1).is_null());
    EXPECT_LT(line.at("batch_time").at(0).get<double>(), line.at("batch_time").at(2).get<double>());
    EXPECT_TRUE(line.at("wait_time").at(0).is_null());
  }
  EXPECT_EQ(count, 5);
}

TEST_F(StepHistoryTest, FolderThatCannotBeWritten_IsTriedAgain) {
  path = folder + "/missing/metrics.jsonl";
  begin();
  report(0, 1, {.step = 1});
  history.flush();
  history.flush();
  std::filesystem::create_directory(folder + "/missing");
  report(0, 2, {.step = 2});
  EXPECT_THAT(events(), ElementsAre("start", "train", "train"));
}

TEST_F(StepHistoryTest, LinkInTheFolder_IsNotWrittenThrough) {
  std::ofstream(folder + "/other") << "";
  history.begin(path, 1, false, at(0));
  report(0, 1, {.step = 1});
  history.flush();
  std::filesystem::remove(path);
  std::filesystem::create_symlink(folder + "/other", path);
  report(0, 2, {.step = 2});
  history.flush();
  EXPECT_THAT(read_file(folder + "/other"), IsEmpty());
}

}  // namespace
}  // namespace fleet
