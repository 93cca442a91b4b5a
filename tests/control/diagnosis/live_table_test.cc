#include "diagnosis/live_table.h"

#include <gmock/gmock.h>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using wire::LiveRank;

constexpr int64_t kMillisecond = 1'000'000, kOneSecond = 1000 * kMillisecond;

struct LiveTableTest : ::testing::Test {
  LiveTableTest() { table.begin(now); }

  RankSteps steps(int rank, int64_t count, int64_t step_ms, int64_t input_ms, int64_t peers_ms) {
    RankSteps report;
    report.set_rank(rank);
    report.set_local_rank(rank % 2);
    report.set_node_rank(rank / 2);
    report.set_steps(count);
    report.set_step(1000 + count);
    report.set_target(2000);
    report.set_step_at_ns(count * step_ms * kMillisecond);
    report.set_samples(count * 32);
    report.set_step_ns(count * step_ms * kMillisecond);
    report.set_input_ns(count * input_ms * kMillisecond);
    report.set_exposed_ns(count * peers_ms * kMillisecond);
    return report;
  }
  RankUsage usage(int rank, int64_t seconds, double cores) {
    RankUsage report;
    report.set_rank(rank);
    report.set_at_ns(seconds * kOneSecond);
    report.set_cpu_ms(static_cast<int64_t>(1000 * cores * static_cast<double>(seconds)));
    report.set_delayed_ns(seconds * kOneSecond / 4);
    report.set_memory(int64_t{1} << 30);
    return report;
  }
  void update(const RankSteps& report) {
    StepReport reports;
    *reports.add_ranks() = report;
    table.update(reports, now);
  }
  void update(const RankUsage& report) {
    StepReport reports;
    *reports.add_usage() = report;
    table.update(reports, now);
  }
  LiveRank rank(int number) const {
    const LiveReport report = table.report(now);
    for (const LiveRank& one : report.ranks()) {
      if (one.rank() == number) return one;
    }
    ADD_FAILURE() << "no rank " << number;
    return {};
  }

  LiveTable::Time now = LiveTable::Time() + 500s;
  LiveTable table;
};

TEST_F(LiveTableTest, NothingReported_HasNoRanks) {
  now += 3s;
  const LiveReport report = table.report(now);
  EXPECT_EQ(report.ranks_size(), 0);
  EXPECT_EQ(report.running_ms(), 3000);
  EXPECT_FALSE(report.has_step());
  EXPECT_FALSE(report.has_seconds_left());
}

TEST_F(LiveTableTest, Steps_BecomeRates) {
  for (int count = 1; count <= 40; ++count) {
    now += 250ms;
    update(steps(3, count, 250, 50, 75));
  }
  const LiveRank live = rank(3);
  EXPECT_EQ(live.node_rank(), 1);
  EXPECT_EQ(live.step(), 1040);
  EXPECT_DOUBLE_EQ(live.step_ms(), 250);
  EXPECT_DOUBLE_EQ(live.samples_per_second(), 128);
  EXPECT_NEAR(live.input_share(), 0.2, 1e-9);
  EXPECT_NEAR(live.exposed_share(), 0.3, 1e-9);
  EXPECT_FALSE(live.has_loss());
  EXPECT_FALSE(live.has_cpu());
  const LiveReport report = table.report(now);
  EXPECT_EQ(report.step(), 1040);
  EXPECT_EQ(report.target(), 2000);
  EXPECT_NEAR(report.seconds_left(), 240, 1);
}

TEST_F(LiveTableTest, Accuracies_AreTheJobs) {
  RankSteps report = steps(1, 5, 100, 0, 0);
  report.set_accuracy(0.5);
  update(report);
  report = steps(0, 5, 100, 0, 0);
  report.set_evaluation_accuracy(0.25);
  update(report);
  EXPECT_EQ(table.report(now).accuracy(), 0.5);
  EXPECT_EQ(table.report(now).evaluation_accuracy(), 0.25);
}

TEST_F(LiveTableTest, FirstReport_HasAStepAndNoRate) {
  update(steps(0, 5, 100, 0, 0));
  EXPECT_EQ(rank(0).step(), 1005);
  EXPECT_FALSE(rank(0).has_step_ms());
}

// A rank that has become slower is seen as slow within some seconds.
TEST_F(LiveTableTest, OldSteps_DoNotCount) {
  RankSteps report;
  for (int second = 1; second <= 60; ++second) {
    const int64_t ms = second <= 30 ? 100 : 500;
    report.set_steps(report.steps() + 1000 / ms);
    report.set_step_ns(report.step_ns() + kOneSecond);
    report.set_step_at_ns(report.step_at_ns() + kOneSecond);
    update(report);
    if (second == 42) EXPECT_DOUBLE_EQ(rank(0).step_ms(), 500);
  }
}

TEST_F(LiveTableTest, Usage_BecomesCoresAndShares) {
  for (int second = 1; second <= 10; ++second) update(usage(2, second, 1.5));
  EXPECT_DOUBLE_EQ(rank(2).cpu(), 1.5);
  EXPECT_DOUBLE_EQ(rank(2).delayed(), 0.25);
  EXPECT_EQ(rank(2).memory(), int64_t{1} << 30);
  EXPECT_FALSE(rank(2).has_step());
}

TEST_F(LiveTableTest, SlowestRank_IsTheOneThatTheOthersWaitFor) {
  for (int count = 1; count <= 20; ++count) {
    update(steps(0, count, 100, 0, 40));
    update(steps(1, count, 100, 0, 5));
    update(steps(2, count, 100, 0, 30));
  }
  EXPECT_FALSE(rank(0).slowest());
  EXPECT_TRUE(rank(1).slowest());
  EXPECT_FALSE(rank(2).slowest());
}

// On GPUs: what it waits of a step is not known, but how long its collectives take.
TEST_F(LiveTableTest, WaitingOfADevice_FindsTheSlowestRank) {
  for (int count = 1; count <= 20; ++count) {
    for (int number : {0, 1, 2}) {
      RankSteps report = steps(number, count, 100, 0, 0);
      report.clear_exposed_ns();
      report.set_waited_ns(count * (number == 2 ? 5 : 60) * kMillisecond);
      update(report);
    }
  }
  EXPECT_FALSE(rank(0).slowest());
  EXPECT_TRUE(rank(2).slowest());
  EXPECT_FALSE(rank(2).has_exposed_share());
}

TEST_F(LiveTableTest, HiddenWaiting_MarksNobody) {
  for (int count = 1; count <= 20; ++count) {
    for (int number : {0, 1}) {
      RankSteps report = steps(number, count, 100, 0, 0);
      report.clear_exposed_ns();
      update(report);
    }
  }
  EXPECT_FALSE(rank(0).has_exposed_share());
  EXPECT_FALSE(rank(0).slowest() || rank(1).slowest());
}

TEST_F(LiveTableTest, Servers_ComeAfterTrainers) {
  RankUsage server = usage(0, 1, 1);
  server.set_server(true);
  update(server);
  update(usage(0, 1, 1));
  update(usage(1, 1, 1));
  const LiveReport report = table.report(now);
  ASSERT_EQ(report.ranks_size(), 3);
  EXPECT_FALSE(report.ranks(1).server());
  EXPECT_TRUE(report.ranks(2).server());
}

TEST_F(LiveTableTest, MoreRanksThanFit_AreCounted) {
  StepReport reports;
  for (int rank = 0; rank < LiveTable::kMaxRanks + 5; ++rank) reports.add_usage()->set_rank(rank);
  table.update(reports, now);
  const LiveReport report = table.report(now);
  EXPECT_EQ(report.ranks_size(), LiveTable::kMaxRanks);
  EXPECT_EQ(report.left_out(), 5);
}

TEST_F(LiveTableTest, NewGeneration_ForgetsTheOldOne) {
  update(steps(0, 5, 100, 0, 0));
  table.begin(now);
  EXPECT_EQ(table.report(now).ranks_size(), 0);
}

TEST_F(LiveTableTest, LowerSteps_CountAndBeginTheEstimateAnew) {
  for (int count = 1; count <= 3; ++count) {
    for (int number : {0, 1}) update(steps(number, count, 1000, 0, 0));
    now += 1s;
  }
  EXPECT_EQ(table.report(now).step(), 1003);
  EXPECT_TRUE(table.report(now).has_seconds_left());
  for (int number : {0, 1}) {
    RankSteps back = steps(number, 3, 1000, 0, 0);
    back.set_step(500);
    update(back);
  }
  EXPECT_EQ(table.report(now).step(), 500);
  EXPECT_FALSE(table.report(now).has_seconds_left());
}

TEST_F(LiveTableTest, StepsWithoutSamples_HaveNoSpeed) {
  for (int count = 1; count <= 20; ++count) {
    RankSteps report = steps(0, count, 1000, 0, 0);
    report.clear_samples();
    update(report);
  }
  EXPECT_DOUBLE_EQ(rank(0).step_ms(), 1000);
  EXPECT_FALSE(rank(0).has_samples_per_second());
}

}  // namespace
}  // namespace fleet
