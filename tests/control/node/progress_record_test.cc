#include <gtest/gtest.h>

#include "node/live_reporter.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

StepReport report_of(int64_t step, std::optional<double> loss = {}) {
  StepReport report;
  report.add_ranks()->set_step(step - 1);
  RankSteps* rank = report.add_ranks();
  rank->set_step(step);
  rank->set_target(100);
  if (loss) rank->set_loss(*loss);
  return report;
}

TEST(ProgressRecord, Steps_AreThoseOfTheFastestRank) {
  ProgressRecord record;
  const ProgressRecord::Time now = ProgressRecord::Time() + 100s;
  record.update(report_of(10), now, 1000);
  record.update(report_of(20, 0.5), now + 10s, 1010);
  EXPECT_EQ(record.progress().step(), 20);
  EXPECT_EQ(record.progress().target(), 100);
  EXPECT_EQ(record.progress().loss(), 0.5);
  EXPECT_DOUBLE_EQ(record.progress().seconds_left(), 80);
  EXPECT_EQ(record.progress().unix_time(), 1010);
}

TEST(ProgressRecord, Writes_AreSecondsApart) {
  ProgressRecord record;
  ProgressRecord::Time now = ProgressRecord::Time() + 100s;
  int writes = 0;
  for (int step = 1; step <= 60; ++step) writes += record.update(report_of(step), now += 1s, 0);
  EXPECT_EQ(writes, 12);
}

TEST(ProgressRecord, LowerSteps_CountAndBeginTheEstimateAnew) {
  ProgressRecord record;
  const ProgressRecord::Time now = ProgressRecord::Time() + 100s;
  record.update(report_of(80), now, 0);
  record.update(report_of(90), now + 10s, 0);
  record.update(report_of(50), now + 60s, 0);
  EXPECT_EQ(record.progress().step(), 50);
  EXPECT_FALSE(record.progress().has_seconds_left());
  record.update(report_of(60), now + 70s, 0);
  EXPECT_DOUBLE_EQ(record.progress().seconds_left(), 40);
}

TEST(ProgressRecord, ReportWithoutSteps_IsNoProgress) {
  ProgressRecord record;
  StepReport usage;
  usage.add_usage();
  EXPECT_FALSE(record.update(usage, ProgressRecord::Time() + 1s, 0));
  EXPECT_EQ(record.progress().unix_time(), 0);
}

}  // namespace
}  // namespace fleet
