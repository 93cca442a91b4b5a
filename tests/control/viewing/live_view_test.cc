#include "viewing/live_view.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using wire::LiveRank;

LiveReport sample(int ranks) {
  LiveReport report;
  report.set_job_id("night");
  report.set_nnodes(2);
  report.set_world_size(ranks);
  report.set_generation(1);
  report.set_running_ms(75'000);
  report.set_step(1200);
  report.set_target(9000);
  report.set_loss(1.25);
  report.set_seconds_left(600.7);
  for (int number = 0; number < ranks; ++number) {
    LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_local_rank(number % 8);
    rank->set_node_rank(number / 8);
    rank->set_step(1200);
    rank->set_step_ms(100 + number);
    rank->set_samples_per_second(3200.0 / (1 + number));
    rank->set_input_share(0.05);
    rank->set_exposed_share(0.1);
    rank->set_cpu(1.5);
    rank->set_memory(int64_t{3} << 29);
  }
  return report;
}

void add_gpu(LiveRank* rank) {
  wire::GpuUsage* gpu = rank->add_gpus();
  gpu->set_utilization(93);
  gpu->set_memory_used(int64_t{70} << 30);
  gpu->set_memory_total(int64_t{80} << 30);
  gpu->set_clock_mhz(1755);
  gpu->set_power_watts(640);
  gpu->set_celsius(71);
  gpu->set_throttled(0x4);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Cells are two blanks or more apart, and none is empty.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t at = line.find_first_not_of(' '); at < line.size();) {
    const size_t end = std::min(line.find("  ", at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = std::min(line.find_first_not_of(' ', end), line.size());
  }
  return cells;
}

TEST(LiveFrame, Ranks_HaveALineEachBelowTheJobsOwn) {
  LiveReport report = sample(2);
  report.mutable_ranks(1)->set_slowest(true);
  report.mutable_ranks(0)->set_loss(1.25);
  EXPECT_EQ(live_frame(report, {.columns = 100}),
            "job night  1:15  2 nodes, 2 ranks  step 1200/9000  loss 1.25  ETA 10:00\n"
            "RANK  NODE  STEP  STEP ms  SAMPLES/s  INPUT%  PEERS%  LOSS  CPU%   RSS\n"
            "   0     0  1200      100       3200       5      10  1.25   150  1.5G\n"
            "  1*     0  1200      101       1600       5      10     -   150  1.5G\n");
}

// Ranks of any other program.
TEST(LiveFrame, ColumnsThatNoRankKnows_AreLeftOut) {
  LiveReport report;
  report.set_job_id("py");
  report.set_nnodes(1);
  report.set_world_size(1);
  LiveRank* rank = report.add_ranks();
  rank->set_cpu(0.5);
  rank->set_memory(100 << 20);
  EXPECT_EQ(live_frame(report, {}),
            "job py  0:00  1 node, 1 rank\n"
            "RANK  CPU%   RSS\n"
            "   0    50  100M\n");
}

TEST(LiveFrame, NarrowTerminal_KeepsTheImportantColumns) {
  LiveReport report = sample(16);
  for (LiveRank& rank : *report.mutable_ranks()) {
    rank.set_loss(1.25);
    add_gpu(&rank);
  }
  for (const int columns : {40, 80, 120, 200}) {
    for (const std::string& line : lines_of(live_frame(report, {.columns = columns}))) {
      EXPECT_LE(line.size(), static_cast<size_t>(columns)) << line;
    }
  }
  const auto narrow = cells_of(lines_of(live_frame(report, {.columns = 80})).at(1));
  EXPECT_THAT(narrow, IsSupersetOf({"STEP ms", "INPUT%", "PEERS%", "GPU%", "CPU%"}));
  EXPECT_THAT(narrow, Not(Contains("MHz")));
  const auto wide = lines_of(live_frame(report, {.columns = 200}));
  EXPECT_THAT(cells_of(wide.at(1)), Contains("MHz"));
  EXPECT_EQ(cells_of(wide.at(1)).back(), "SLOWED BY");
  EXPECT_EQ(cells_of(wide.at(2)).back(), "power");
}

TEST(LiveFrame, LongLines_AreWrappedAtWords) {
  LiveReport report = sample(2);
  report.mutable_bottleneck()->set_line(
      "bottleneck: straggler (rank 1), 38 % of the step: rank 1 (local rank 1) on node 0 has no "
      "core for 37 % of its step");
  auto lines = lines_of(live_frame(report, {.columns = 50}));
  for (const std::string& line : lines) EXPECT_LE(line.size(), 50u) << line;
  lines.resize(5);
  EXPECT_THAT(
      lines,
      ElementsAre("job night  1:15  2 nodes, 2 ranks  step 1200/9000", "loss 1.25  ETA 10:00",
                  "bottleneck: straggler (rank 1), 38 % of the step:",
                  "rank 1 (local rank 1) on node 0 has no core for 37", "% of its step"));
  // A low screen has few lines for it; a word without an end is cut.
  EXPECT_EQ(lines_of(live_frame(report, {.columns = 50, .rows = 8})).size(), 6u);
  report.mutable_bottleneck()->set_line(std::string(300, 'x'));
  for (const std::string& line : lines_of(live_frame(report, {.columns = 50}))) {
    EXPECT_LE(line.size(), 50u) << line;
  }
}

TEST(LiveKeyLine, EachLetter_NamesOneSortKey) {
  EXPECT_THAT(live_key_line("ms", 200), HasSubstr("step [ms] input"));
  EXPECT_THAT(live_key_line("memory", 200),
              ::testing::AllOf(HasSubstr("step ms input"), HasSubstr("cpu [memory] gpu")));
  EXPECT_EQ(live_key_line("rank", 30).size(), 30u);
}

TEST(LiveFrame, SortKey_PutsTheLargestFirstAndTheUnknownLast) {
  LiveReport report = sample(3);
  report.mutable_ranks(0)->clear_step_ms();
  const auto lines = lines_of(live_frame(report, {.sort = "ms"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(cells_of(lines[2])[0], "2");
  EXPECT_EQ(cells_of(lines[3])[0], "1");
  EXPECT_EQ(cells_of(lines[4])[0], "0");
}

TEST(LiveFrame, MoreRanksThanRows_AreCounted) {
  const auto lines = lines_of(live_frame(sample(100), {.rows = 10}));
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.back(), "and 93 more ranks");
  EXPECT_EQ(lines_of(live_frame(sample(8), {.rows = 10})).size(), 10u);
}

TEST(LiveFrame, NamesOfOthers_CannotMoveTheCursor) {
  LiveReport report = sample(1);
  report.set_job_id("a\x1b[2Jb");
  report.mutable_bottleneck()->set_line("slow\x1b[2J\nline");
  const std::string frame = live_frame(report, {});
  EXPECT_EQ(frame.find('\x1b'), std::string::npos);
  EXPECT_EQ(lines_of(frame).size(), 4u);
}

TEST(LiveJson, UnknownValues_AreNull) {
  LiveReport report = sample(1);
  report.mutable_ranks(0)->set_loss(std::nan(""));
  report.mutable_ranks(0)->clear_cpu();
  add_gpu(report.mutable_ranks(0));
  report.set_accuracy(0.5);
  const auto json = nlohmann::json::parse(live_json(report, "rank", 12.5));
  EXPECT_EQ(json["accuracy"], 0.5);
  EXPECT_TRUE(json["evaluation_accuracy"].is_null());
  EXPECT_EQ(json["time"], 12.5);
  EXPECT_EQ(json["job_id"], "night");
  EXPECT_EQ(json["step"], 1200);
  const auto& rank = json["ranks"][0];
  EXPECT_EQ(rank["step_ms"], 100);
  EXPECT_EQ(rank["peers_share"], 0.1);
  EXPECT_TRUE(rank["loss"].is_null());
  EXPECT_TRUE(rank["cpu"].is_null());
  EXPECT_EQ(rank["gpus"][0]["utilization"], 93);
  EXPECT_EQ(rank["gpus"][0]["slowed_by"], "power");
}

TEST(LiveJson, Frame_IsOneLine) {
  const std::string json = live_json(sample(3), "ms", 0);
  EXPECT_EQ(lines_of(json).size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(json)["ranks"][0]["rank"], 2);
}

TEST(LiveSortKeys, EachOne_Sorts) {
  LiveReport report = sample(4);
  for (LiveRank& rank : *report.mutable_ranks()) {
    rank.set_loss(rank.rank());
    add_gpu(&rank);
  }
  for (const std::string& key : live_sort_keys()) {
    EXPECT_EQ(lines_of(live_frame(report, {.sort = key, .columns = 200})).size(), 6u) << key;
  }
}

// What a frame of a large job takes, for the log: parsed, sorted, laid out, and as JSON.
TEST(LiveFrame, ThousandRanks_TakeSoManyMilliseconds) {
  LiveReport report = sample(1000);
  std::mt19937 random(1);
  for (LiveRank& rank : *report.mutable_ranks()) {
    rank.set_step_ms(std::uniform_real_distribution<>(100, 200)(random));
    rank.set_loss(std::uniform_real_distribution<>(1, 2)(random));
    add_gpu(&rank);
  }
  const std::string bytes = report.SerializeAsString();
  const auto begin = std::chrono::steady_clock::now();
  LiveReport parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  const std::string frame = live_frame(parsed, {.sort = "ms", .columns = 200});
  const std::chrono::duration<double, std::milli> text = std::chrono::steady_clock::now() - begin;
  const std::string json = live_json(parsed, "ms", 0);
  const std::chrono::duration<double, std::milli> both = std::chrono::steady_clock::now() - begin;
  std::printf("a frame of 1000 ranks: %.2f ms as text, %.2f ms as JSON; %zu bytes on the wire\n",
              text.count(), (both - text).count(), bytes.size());
  EXPECT_EQ(lines_of(frame).size(), 1002u);
  EXPECT_EQ(nlohmann::json::parse(json)["ranks"].size(), 1000u);
}

}  // namespace
}  // namespace fleet
