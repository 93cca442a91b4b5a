#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "launch/starting/metrics_server.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

LiveReport sample() {
  LiveReport report;
  report.set_job_id("ni\"ght\n");
  report.set_generation(1);
  report.set_nnodes(2);
  report.set_world_size(2);
  report.set_running_ms(1500);
  report.set_step(7);
  report.mutable_bottleneck()->set_compute(0.6);
  wire::Cause* cause = report.mutable_bottleneck()->add_causes();
  cause->set_kind(wire::Cause::INPUT);
  cause->set_share(0.31);
  for (const int number : {0, 1}) {
    wire::LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_node_rank(number);
    rank->set_step(7);
    rank->set_step_ms(125);
    rank->set_samples_per_second(256);
    rank->set_input_share(0.25);
    rank->set_exposed_share(0.125);
    rank->set_loss(0.5);
    rank->set_cpu(1.5);
    rank->set_memory(1 << 20);
    rank->set_delayed(0.01);
  }
  return report;
}

void add_gpus(wire::LiveRank* rank, int count) {
  for (int id = 0; id < count; ++id) {
    wire::GpuUsage* gpu = rank->add_gpus();
    gpu->set_id(id);
    gpu->set_utilization(93);
    gpu->set_memory_used(1);
    gpu->set_memory_total(2);
    gpu->set_clock_mhz(1755);
    gpu->set_power_watts(640);
    gpu->set_celsius(71);
    gpu->set_throttled(4);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The values of each family: "fleetrun_job_step" has {"7"}.
std::map<std::string, std::vector<std::string>> families_of(const std::string& text) {
  std::map<std::string, std::vector<std::string>> families;
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with("#")) {
      families[line.substr(0, line.find('{'))].push_back(line.substr(line.rfind(' ') + 1));
    }
  }
  return families;
}

int series_of_rank(const std::string& text, int rank) {
  int count = 0;
  const std::string label = ",rank=\"" + std::to_string(rank) + "\"";
  for (const std::string& line : lines_of(text)) count += line.find(label) != std::string::npos;
  return count;
}

TEST(MetricsText, Values_HaveTheirUnitsAndLabels) {
  const std::string job = "{job_id=\"ni\\\"ght\\n\",";
  const std::vector<std::string> lines = {
      "# HELP fleetrun_rank_step_seconds Time of a step, without evaluations and saves.",
      "# TYPE fleetrun_rank_step_seconds gauge",
      "fleetrun_rank_step_seconds" + job + "role=\"trainer\",rank=\"0\",node_rank=\"0\"} 0.125",
      "fleetrun_job_lost_ratio" + job + "cause=\"input\"} 0.31"};
  EXPECT_THAT(lines_of(metrics_text(sample(), 0)), IsSupersetOf(lines));
}

TEST(MetricsText, EachNode_ServesItsOwnRanksAndTheFirstTheJob) {
  const std::string first = metrics_text(sample(), 0), second = metrics_text(sample(), 1);
  EXPECT_EQ(series_of_rank(first, 1), 0);
  EXPECT_EQ(series_of_rank(second, 0), 0);
  EXPECT_GT(series_of_rank(second, 1), 5);
  EXPECT_THAT(families_of(first)["fleetrun_job_step"], ElementsAre("7"));
  EXPECT_FALSE(families_of(second).contains("fleetrun_job_step"));
}

TEST(MetricsText, UnknownValues_AreLeftOut) {
  LiveReport report = sample();
  report.mutable_ranks(0)->clear_loss();
  report.clear_step();
  const auto families = families_of(metrics_text(report, 0));
  EXPECT_FALSE(families.contains("fleetrun_rank_loss"));
  EXPECT_FALSE(families.contains("fleetrun_job_step"));
  EXPECT_TRUE(families.contains("fleetrun_rank_step"));
}

TEST(MetricsText, InfiniteLoss_IsANumberOfTheFormat) {
  LiveReport report = sample();
  report.mutable_ranks(0)->set_loss(std::numeric_limits<double>::infinity());
  EXPECT_THAT(families_of(metrics_text(report, 0))["fleetrun_rank_loss"], ElementsAre("+Inf"));
}

TEST(MetricsText, SeriesOfARank_AreThirtyAtMost) {
  for (const int gpus : {0, 1, 2, 3, 8, 16}) {
    LiveReport report = sample();
    add_gpus(report.mutable_ranks(0), gpus);
    EXPECT_LE(series_of_rank(metrics_text(report, 0), 0), 30) << gpus;
  }
}

// The rules of the format: a header once, before all series of its name, and no series twice.
TEST(MetricsText, Families_AreWholeAndUnique) {
  LiveReport report = sample();
  add_gpus(report.mutable_ranks(0), 2);
  report.mutable_ranks(1)->set_node_rank(0);
  std::set<std::string> families, series;
  std::string current;
  for (const std::string& line : lines_of(metrics_text(report, 0))) {
    if (line.starts_with("# HELP ")) {
      current = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(current).second) << line;
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(line.starts_with(current + "{")) << line;
      EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
  EXPECT_GT(series.size(), 30u);
}

// Every series there is, with names and values of all kinds.
TEST(MetricsText, Promtool_AcceptsEverySeries) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed: apt-get install prometheus";
  }
  LiveReport report = sample();
  report.set_target(9000);
  report.set_loss(0.5);
  report.set_seconds_left(60);
  report.mutable_ranks(0)->set_loss(std::numeric_limits<double>::quiet_NaN());
  report.mutable_ranks(1)->set_node_rank(0);
  report.mutable_ranks(1)->set_slowest(true);
  for (wire::LiveRank& rank : *report.mutable_ranks()) add_gpus(&rank, 2);
  report.add_ranks()->set_server(true);
  std::FILE* promtool = ::popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = metrics_text(report, 0);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), promtool), text.size());
  EXPECT_EQ(::pclose(promtool), 0) << text;
}

}  // namespace
}  // namespace fleet
