#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "viewing/live_view.h"

namespace fleet {
namespace {

using Json = nlohmann::json;

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

TEST(LiveHistory, Points_HaveTheJobsAndTheRanksValues) {
  LiveHistory history;
  LiveReport report = report_of(2, 8);
  report.add_ranks()->set_server(true);
  report.mutable_ranks(0)->set_cpu(1.5);
  history.add(report, 1000.25);
  const Json json = Json::parse(history.json());
  ASSERT_EQ(json["points"].size(), 1u);
  const Json& point = json["points"][0];
  EXPECT_EQ(point["step"], 8);
  EXPECT_EQ(point["loss"], 0.125);
  EXPECT_EQ(point["rate"], 80);
  EXPECT_EQ(point["step_ms"], 100);
  ASSERT_EQ(point["ranks"].size(), 2u);  // without the server
  EXPECT_EQ(point["ranks"][0], Json::parse("[50, 10, 50, 150]"));
  EXPECT_EQ(point["ranks"][1], Json::parse("[75, 10, 25, null]"));
}

TEST(LiveHistory, UnknownValues_AreNull) {
  LiveHistory history;
  LiveReport report;
  report.add_ranks()->set_cpu(1);
  report.set_loss(std::numeric_limits<double>::infinity());
  history.add(report, 1);
  const Json point = Json::parse(history.json())["points"][0];
  for (const char* name : {"step", "loss", "rate", "step_ms"}) {
    EXPECT_TRUE(point[name].is_null()) << name;
  }
  EXPECT_EQ(point["ranks"][0], Json::parse("[null, null, null, 100]"));
}

TEST(LiveHistory, LongJobs_AreKeptFromTheBeginningWithFewerPoints) {
  LiveHistory history;
  for (int second = 1; second <= 20'000; ++second) history.add(report_of(2, second), second);
  EXPECT_LT(history.size(), LiveHistory::kMaxPoints);
  EXPECT_GT(history.size(), LiveHistory::kMaxPoints / 4);
  const Json points = Json::parse(history.json())["points"];
  EXPECT_LT(points.front()["time"], 200);
  EXPECT_GT(points.back()["time"], 19'800);
  // Evenly: no gap is much larger than another.
  double most = 0, least = 1e9;
  for (size_t i = 1; i < points.size(); ++i) {
    const double gap = points[i]["time"].get<double>() - points[i - 1]["time"].get<double>();
    most = std::max(most, gap);
    least = std::min(least, gap);
  }
  EXPECT_LE(most, 2 * least);
}

TEST(LiveHistory, ManyRanks_HaveFewerPoints) {
  LiveHistory history;
  const LiveReport report = report_of(8192, 1);
  for (int second = 0; second < 200; ++second) history.add(report, second);
  EXPECT_LE(history.size() * 8192, LiveHistory::kMaxCells + 8192);
  EXPECT_GT(history.size(), 16u);
}

}  // namespace
}  // namespace fleet
