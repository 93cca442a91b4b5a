#include "diagnosis/straggler_detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Ranks that step together: a step takes as long as the slowest one's own time.
struct StragglerTest : ::testing::Test {
  void SetUp() override { detector.begin(now); }

  // Ten seconds in which each rank needs so many milliseconds a step of its own; what was said.
  std::vector<std::string> pass(const std::vector<double>& own_ms, int64_t steps = 10) {
    while (reports.ranks_size() < static_cast<int>(own_ms.size())) reports.add_ranks();
    const double slowest = *std::max_element(own_ms.begin(), own_ms.end());
    std::vector<std::string> lines;
    for (int part = 0; part < 10; ++part) {
      now += 1s;
      for (size_t i = 0; i < own_ms.size(); ++i) {
        RankSteps& report = *reports.mutable_ranks(static_cast<int>(i));
        report.set_rank(static_cast<int>(i));
        report.set_local_rank(static_cast<int>(i % 2));
        report.set_node_rank(static_cast<int>(i / 2));
        report.set_steps(report.steps() + steps);
        report.set_step(report.step() + steps);
        const double passed = 1e6 * slowest * static_cast<double>(steps);
        const double waited = 1e6 * (slowest - own_ms[i]) * static_cast<double>(steps);
        report.set_step_at_ns(report.step_at_ns() + static_cast<int64_t>(passed));
        report.set_waited_ns(report.waited_ns() + static_cast<int64_t>(waited));
      }
      for (std::string& line : detector.update(reports, now)) lines.push_back(std::move(line));
    }
    return lines;
  }
  std::vector<std::string> pass_twice(const std::vector<double>& own_ms) {
    std::vector<std::string> lines = pass(own_ms);
    for (std::string& line : pass(own_ms)) lines.push_back(std::move(line));
    return lines;
  }

  StragglerDetector detector;
  StragglerDetector::Time now = StragglerDetector::Time() + 100s;
  StepReport reports;
};

TEST_F(StragglerTest, EqualRanks_AreNotNamed) {
  EXPECT_THAT(pass_twice({100, 103, 98, 101}), IsEmpty());
}

TEST_F(StragglerTest, SlowRank_IsNamedOnceWithItsNode) {
  EXPECT_THAT(pass_twice({100, 103, 98, 150}),
              ElementsAre(AllOf(HasSubstr("rank 3"), HasSubstr("is a straggler"))));
  EXPECT_THAT(pass_twice({100, 103, 98, 150}), IsEmpty());
}

TEST_F(StragglerTest, OneSlowWindow_IsNotEnough) {
  pass({100, 100, 100});
  EXPECT_THAT(pass({100, 100, 200}), IsEmpty());
  EXPECT_THAT(pass({100, 100, 100}), IsEmpty());
  EXPECT_THAT(pass({100, 100, 200}), IsEmpty());
}

TEST_F(StragglerTest, SlowRankOfTwo_IsNamed) {
  EXPECT_THAT(pass_twice({200, 100}), ElementsAre(HasSubstr("rank 0 (local rank 0) on node 0")));
}

// A median or a spread of 0 has no sigma, and one far below the slow rank says nothing.
TEST_F(StragglerTest, Sigmas_AreShownOnlyIfTheRanksHaveASpread) {
  const auto line = [&](const std::vector<double>& own_ms) {
    detector.begin(now);
    reports.Clear();
    const std::vector<std::string> lines = pass_twice(own_ms);
    EXPECT_EQ(lines.size(), 1U);
    return lines.empty() ? "" : lines[0];
  };
  for (const std::vector<double>& own_ms : std::vector<std::vector<double>>{
           {0, 992}, {0, 0, 0, 992}, {100, 200}, {100, 100, 100, 200}, {0.01, 0.02, 0.03, 992}}) {
    EXPECT_THAT(line(own_ms), AllOf(HasSubstr(" ms"), Not(HasSubstr("sigma"))));
  }
  EXPECT_THAT(line({90, 100, 110, 100, 90, 110, 100, 200}), HasSubstr(" sigma)"));
}

TEST_F(StragglerTest, RankThatRecovers_IsSaidToKeepUp) {
  pass_twice({100, 100, 200});
  EXPECT_THAT(pass({100, 100, 100}),
              ElementsAre(AllOf(HasSubstr("rank 2"), HasSubstr("keeps up"))));
  EXPECT_THAT(pass({100, 100, 100}), IsEmpty());
}

TEST_F(StragglerTest, WideSpread_NamesNobody) {
  EXPECT_THAT(pass_twice({100, 130, 160, 190, 220, 250}), IsEmpty());
}

TEST_F(StragglerTest, FewSteps_AreCollectedOverSeveralWindows) {
  StragglerDetector slow_steps;
  slow_steps.begin(now);
  std::vector<std::string> lines;
  for (int i = 0; i < 12; ++i) {
    now += 10s;
    const int64_t steps = i + 1;  // one a window
    StepReport report;
    for (int rank = 0; rank < 2; ++rank) {
      RankSteps* one = report.add_ranks();
      one->set_rank(rank);
      one->set_steps(steps);
      one->set_step_at_ns(i * 10'000'000'000);
      one->set_waited_ns(rank * i * 5'000'000'000);
    }
    for (const auto& line : slow_steps.update(report, now)) {
      lines.push_back(line);
    }
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("rank 0")));
}

TEST_F(StragglerTest, Progress_IsTheFurthest) {
  EXPECT_EQ(detector.step(), std::nullopt);
  for (const int step : {12, 11}) reports.add_ranks()->set_step(step);
  reports.mutable_ranks(1)->set_rank(1);
  detector.update(reports, now);
  EXPECT_EQ(detector.step(), 12);
  detector.begin(now);
  EXPECT_EQ(detector.step(), std::nullopt);
}

TEST_F(StragglerTest, RanksThatStartAgain_AreMeasuredAnew) {
  pass_twice({100, 100, 200});
  reports.Clear();
  detector.begin(now);
  EXPECT_THAT(pass({100, 100, 100}), IsEmpty());
}

}  // namespace
}  // namespace fleet
