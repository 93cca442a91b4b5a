#include "diagnosis/live_history.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using Point = wire::LiveHistory::Point;

LiveReport report_of(int ranks, int64_t step) {
  LiveReport report;
  report.set_step(step);
  report.set_loss(1.0 / static_cast<double>(step));
  for (int number = 0; number < ranks; ++number) {
    wire::LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_step_ms(100);
    rank->set_exposed_share(number == 1 ? 0.25 : 0.5);
    rank->set_input_share(0.1);
    rank->set_samples_per_second(40);
  }
  return report;
}

void add_gpu(int utilization, int64_t used, wire::LiveRank* rank) {
  wire::GpuUsage* gpu = rank->add_gpus();
  gpu->set_utilization(utilization);
  gpu->set_memory_used(used);
  gpu->set_memory_total(80);
}

int share(const std::string& shares, size_t rank) {
  return static_cast<unsigned char>(shares.at(rank));
}

struct LiveHistoryTest : ::testing::Test {
  LiveHistory::Time after(std::chrono::milliseconds passed) const { return begin + passed; }
  // A report a second.
  void run(int ranks, int first, int last) {
    for (int second = first; second <= last; ++second) {
      history.add(report_of(ranks, second), after(std::chrono::seconds(second)));
    }
  }
  const auto& points() const { return history.points().points(); }
  size_t cells() const {
    size_t all = 0;
    for (const Point& point : points()) all += point.ranks().input().size();
    return all;
  }
  size_t bytes() const {
    size_t all = 0;
    for (const Point& point : points()) {
      const wire::LiveHistory::Ranks& ranks = point.ranks();
      all += sizeof point + sizeof ranks;
      all += sizeof(float) * static_cast<size_t>(ranks.own_ms().Capacity());
      all += sizeof(float) * static_cast<size_t>(ranks.cpu().Capacity());
      for (const std::string* text : {&ranks.input(), &ranks.peers(), &ranks.gpu()}) {
        all += text->capacity();
      }
    }
    return all;
  }

  LiveHistory::Time begin = LiveHistory::Time() + 1000s;
  LiveHistory history;
};

TEST_F(LiveHistoryTest, Points_HaveTheJobsValues) {
  LiveReport report = report_of(2, 8);
  report.set_accuracy(0.75);
  report.set_evaluation_accuracy(0.5);
  report.add_ranks()->set_server(true);
  add_gpu(90, 20, report.mutable_ranks(0));
  add_gpu(70, 60, report.mutable_ranks(1));
  history.add(report, begin);
  ASSERT_EQ(points().size(), 1);
  const Point& point = points()[0];
  EXPECT_EQ(point.step(), 8);
  EXPECT_EQ(point.loss(), 0.125);
  EXPECT_EQ(point.accuracy(), 0.75);
  EXPECT_EQ(point.evaluation_accuracy(), 0.5);
  EXPECT_EQ(point.samples_per_second(), 80);
  EXPECT_EQ(point.step_ms(), 100);
  EXPECT_EQ(point.gpu(), 80);
  EXPECT_EQ(point.gpu_memory(), 75);  // of the fullest
}

TEST_F(LiveHistoryTest, Ranks_AreAtTheirNumber) {
  LiveReport report = report_of(3, 8);
  report.mutable_ranks()->DeleteSubrange(0, 1);  // has not reported yet
  report.add_ranks()->set_server(true);
  report.mutable_ranks(0)->set_cpu(1.5);
  add_gpu(90, 20, report.mutable_ranks(1));
  history.add(report, begin);
  const wire::LiveHistory::Ranks& ranks = points()[0].ranks();
  ASSERT_EQ(ranks.own_ms_size(), 3);
  EXPECT_TRUE(std::isnan(ranks.own_ms(0)));
  EXPECT_EQ(ranks.own_ms(1), 75);
  EXPECT_EQ(ranks.own_ms(2), 50);
  EXPECT_EQ(ranks.cpu(1), 1.5f);
  EXPECT_TRUE(std::isnan(ranks.cpu(2)));
  EXPECT_EQ(share(ranks.input(), 0), LiveHistory::kUnknownShare);
  EXPECT_EQ(share(ranks.input(), 1), 10);
  EXPECT_EQ(share(ranks.peers(), 2), 50);
  EXPECT_EQ(share(ranks.gpu(), 1), LiveHistory::kUnknownShare);
  EXPECT_EQ(share(ranks.gpu(), 2), 90);
}

TEST_F(LiveHistoryTest, UnknownValues_AreUnset) {
  LiveReport report;
  report.add_ranks()->set_cpu(1);
  history.add(report, begin);
  const Point& point = points()[0];
  EXPECT_FALSE(point.has_step() || point.has_loss() || point.has_accuracy());
  EXPECT_FALSE(point.has_samples_per_second() || point.has_step_ms());
  EXPECT_FALSE(point.has_gpu() || point.has_gpu_memory());
}

TEST_F(LiveHistoryTest, ReportsTooSoon_AreNotWanted) {
  EXPECT_TRUE(history.wants(begin));
  history.add(report_of(1, 1), begin);
  EXPECT_FALSE(history.wants(after(999ms)));
  history.add(report_of(1, 2), after(999ms));
  EXPECT_EQ(points().size(), 1);
  EXPECT_TRUE(history.wants(after(1s)));
}

TEST_F(LiveHistoryTest, LongJobs_AreKeptFromTheBeginningWithFewerPoints) {
  constexpr int kSeconds = 100'000;
  run(2, 0, kSeconds);
  EXPECT_LT(points().size(), LiveHistory::kMaxPoints);
  EXPECT_GT(points().size(), LiveHistory::kMaxPoints / 4);
  EXPECT_EQ(points()[0].at_ms(), 0);
  EXPECT_GT(points()[points().size() - 1].at_ms(), 990 * kSeconds);
  for (int i = 1; i < points().size(); ++i) {
    EXPECT_EQ(points()[i].at_ms() - points()[i - 1].at_ms(), history.points().interval_ms());
  }
}

// A year of the largest report.
TEST_F(LiveHistoryTest, LargeJobs_KeepTheirCurvesAndFewerOfTheirRanks) {
  const LiveReport report = report_of(8192, 1);
  for (int hour = 0; hour < 365 * 24; ++hour) {
    if (history.wants(after(std::chrono::hours(hour)))) {
      history.add(report, after(std::chrono::hours(hour)));
    }
  }
  EXPECT_GT(points().size(), LiveHistory::kMaxPoints / 4);
  EXPECT_LE(cells(), LiveHistory::kMaxCells);
  EXPECT_GE(cells(), LiveHistory::kMaxCells / 4);
  EXPECT_TRUE(points()[0].has_ranks());
  EXPECT_LT(bytes(), 10'000'000u);
}

TEST_F(LiveHistoryTest, Snapshot_ContinuesElsewhere) {
  run(2, 0, 1000);
  LiveHistory page;
  page.take(history.snapshot(after(1000s)), begin + 5000s);  // on another clock
  EXPECT_EQ(page.points().points_size(), points().size());
  EXPECT_EQ(page.points().points(0).at_ms(), 0);
  EXPECT_EQ(page.points().interval_ms(), history.points().interval_ms());
  page.add(report_of(2, 1001), begin + 5010s);
  const auto& all = page.points().points();
  EXPECT_EQ(all[all.size() - 1].at_ms(), 1'010'000);
}

TEST_F(LiveHistoryTest, HistoryOfALaterHost_DoesNotReplaceAnOlderOne) {
  run(2, 0, 100);
  LiveHistory later;
  later.add(report_of(2, 90), after(90s));
  history.take(later.snapshot(after(101s)), after(101s));
  EXPECT_GT(points().size(), 50);
  history.take({}, after(102s));
  EXPECT_GT(points().size(), 50);
}

TEST_F(LiveHistoryTest, HistoriesOfOthers_AreBounded) {
  wire::LiveHistory other;
  for (int i = 0; i < 10'000; ++i) {
    Point* point = other.add_points();
    point->set_at_ms(i);
    point->mutable_ranks()->mutable_input()->assign(1000, 'x');
  }
  other.set_now_ms(-1);
  other.set_interval_ms(-1);
  history.take(other, begin);
  EXPECT_LT(points().size(), LiveHistory::kMaxPoints);
  EXPECT_LE(cells(), LiveHistory::kMaxCells);
  EXPECT_GT(history.points().interval_ms(), 0);
}

TEST_F(LiveHistoryTest, ForgottenRanks_LeaveTheCurves) {
  run(2, 0, 10);
  history.forget_ranks();
  EXPECT_EQ(points().size(), 11);
  EXPECT_EQ(cells(), 0u);
}

}  // namespace
}  // namespace fleet
