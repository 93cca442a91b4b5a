#include "diagnosis/live_servers.h"

#include <gtest/gtest.h>

#include "diagnosis/live_table.h"

namespace fleet {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

wire::ServerReport report_after(int seconds, int number) {
  wire::ServerReport report;
  report.set_rank(number);
  report.set_at_ns(seconds * kSecond);
  report.set_state(wire::ServerReport::SERVING);
  report.set_blocks(3);
  report.set_pushes(20 * seconds);
  report.set_received(2'000'000 * seconds);
  report.set_busy_ns(seconds * kSecond / 4);
  report.set_waited_ns(seconds * kSecond / 2);
  wire::ServedTable* table = report.add_tables();
  table->set_name("embedding");
  table->set_rows(1000 + seconds);
  table->set_bytes(64'000);
  table->set_pulled(500 * seconds);
  return report;
}

RankSteps steps_after(int seconds) {
  RankSteps steps;
  steps.set_steps(10 * seconds);
  steps.set_step_at_ns(seconds * kSecond);
  steps.set_step_ns(seconds * kSecond);
  wire::ServerUse& use = *steps.mutable_servers();
  use.set_updates(10 * seconds);
  use.set_values_ns(seconds * kSecond / 5);
  use.set_sent(1'000'000 * seconds);
  use.set_queued(30 * seconds);
  use.set_capacity(16);
  use.set_stale(20 * seconds);
  use.add_answer_ns(seconds * kSecond / 10);
  use.add_answer_ns(seconds * kSecond / 5);
  return steps;
}

TEST(LiveServer, TwoReports_GiveRates) {
  const wire::LiveServer live = live_server(report_after(10, 0), report_after(20, 0));
  EXPECT_DOUBLE_EQ(live.pushes(), 20);
  EXPECT_DOUBLE_EQ(live.received(), 2e6);
  EXPECT_DOUBLE_EQ(live.busy(), 0.25);
  EXPECT_DOUBLE_EQ(live.waits(), 0.5);
  EXPECT_EQ(live.rows(), 1020);
  ASSERT_EQ(live.tables_size(), 1);
  EXPECT_DOUBLE_EQ(live.tables(0).pulled(), 500);
}

TEST(LiveServer, OneReport_HasNoRates) {
  const wire::LiveServer live = live_server(report_after(10, 0), report_after(10, 0));
  EXPECT_FALSE(live.has_pushes());
  EXPECT_EQ(live.blocks(), 3);
  EXPECT_EQ(live.table_bytes(), 64'000);
}

TEST(LiveServerUse, OfATrainerApart_HasQueueAndStaleness) {
  const wire::LiveServerUse live = live_server_use(steps_after(10), steps_after(20));
  EXPECT_DOUBLE_EQ(live.values_share(), 0.2);
  EXPECT_DOUBLE_EQ(live.sent(), 1e6);
  EXPECT_DOUBLE_EQ(live.queued(), 3);
  EXPECT_DOUBLE_EQ(live.stale(), 2);
}

TEST(LiveTable, ReportsOfServers_AreRowsBehindTheTrainers) {
  LiveTable table;
  const auto now = LiveTable::Time() + std::chrono::seconds(100);
  table.begin(now);
  for (const int seconds : {1, 10, 20}) {
    StepReport reports;
    *reports.add_ranks() = steps_after(seconds);
    for (const int number : {0, 1}) *reports.add_servers() = report_after(seconds, number);
    table.update(reports, now);
  }
  const LiveReport report = table.report(now);
  ASSERT_EQ(report.ranks_size(), 3);
  EXPECT_TRUE(report.ranks(0).has_servers());
  EXPECT_FALSE(report.ranks(0).has_serving());
  EXPECT_NEAR(report.ranks(1).serving().answer_ms(), 10, 1e-9);
  EXPECT_NEAR(report.ranks(2).serving().answer_ms(), 20, 1e-9);
  EXPECT_FALSE(report.ranks(1).slowest());
  EXPECT_TRUE(report.ranks(2).slowest());
}

}  // namespace
}  // namespace fleet
