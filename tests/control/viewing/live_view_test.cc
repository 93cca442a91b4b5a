#include "viewing/live_view.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "base/terminal_text.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
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

std::vector<std::string> titles_of(const LiveFrame& frame) {
  for (const std::string& line : frame.lines) {
    const std::vector<std::string> cells = cells_of(line);
    if (!cells.empty() && (cells[0] == "RANK" || cells[0] == "NODE")) return cells;
  }
  return {};
}

TEST(LiveFrame, Ranks_HaveALineEachBelowTheJobsOwn) {
  LiveReport report = sample(2);
  report.mutable_ranks(1)->set_slowest(true);
  report.mutable_ranks(0)->set_loss(1.25);
  EXPECT_EQ(live_frame(report, {.columns = 100}).text(),
            "job night  1:15  2 nodes, 2 ranks  step 1200/9000  loss 1.25  ETA 10:00\n"
            "RANK  NODE  STEP  STEP ms  SAMPLES/s  INPUT%  PEERS%  LOSS  CPU%   RSS\n"
            "   0     0  1200      100       3200       5      10  1.25   150  1.5G\n"
            "  1*     0  1200      101       1600       5      10     -   150  1.5G\n"
            " all     -  1200      101       4800       5      10  1.25   300  3.0G\n");
}

// The example of docs/how-to/watch_a_job.md.
TEST(LiveFrame, EightyColumns_HaveTheWholeTable) {
  LiveReport report;
  report.set_job_id("night");
  report.set_nnodes(1);
  report.set_world_size(4);
  report.set_running_ms(41'000);
  report.set_step(1630);
  report.set_target(93800);
  report.set_loss(0.412);
  report.set_seconds_left(38 * 60 + 54);
  report.mutable_bottleneck()->set_line(
      "bottleneck: straggler (rank 2), 38 % of the step: rank 2 (local rank 2) on node 0 has no "
      "core for 37 % of its step: stop the other processes on its cores");
  constexpr double kPeers[] = {0.39, 0.39, 0.01, 0.38}, kCpu[] = {1.01, 1.00, 0.60, 1.01};
  constexpr int64_t kMebibytes[] = {212, 211, 210, 212};
  for (int number = 0; number < 4; ++number) {
    LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_slowest(number == 2);
    rank->set_step(1630);
    rank->set_step_ms(24.9);
    rank->set_samples_per_second(1285);
    rank->set_input_share(number == 2 ? 0.02 : 0.01);
    rank->set_exposed_share(kPeers[number]);
    rank->set_loss(0.412);
    rank->set_cpu(kCpu[number]);
    rank->set_memory(kMebibytes[number] << 20);
  }
  const std::vector<std::string> lines = {
      "job night  0:41  1 node, 4 ranks  step 1630/93800  loss 0.412  ETA 38:54",
      "bottleneck: straggler (rank 2), 38 % of the step: rank 2 (local rank 2) on node",
      "0 has no core for 37 % of its step: stop the other processes on its cores",
      "RANK  STEP  STEP ms  SAMPLES/s  INPUT%  PEERS%   LOSS  CPU%   RSS",
      "   0  1630     24.9       1285       1      39  0.412   101  212M",
      "   1  1630     24.9       1285       1      39  0.412   100  211M",
      "  2*  1630     24.9       1285       2       1  0.412    60  210M",
      "   3  1630     24.9       1285       1      38  0.412   101  212M",
      " all  1630     24.9       5140       1      29  0.412   362  845M"};
  EXPECT_EQ(live_frame(report, {.columns = 80, .rows = 23}).lines, lines);
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
  EXPECT_EQ(live_frame(report, {}).text(),
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
  report.set_job_id("\u6a21\u578b-" + std::string(40, 'x'));
  for (const int columns : {20, 40, 80, 120, 200}) {
    for (const bool by_node : {false, true}) {
      const LiveFrame frame =
          live_frame(report, {.columns = columns, .rows = 23, .by_node = by_node});
      EXPECT_LE(frame.lines.size(), 23u);
      for (const std::string& line : frame.lines) {
        EXPECT_LE(columns_of_text(line), static_cast<size_t>(columns)) << line;
      }
      EXPECT_LE(live_key_line(frame, {.columns = columns}).size(), static_cast<size_t>(columns));
    }
  }
  report.set_job_id("night");
  const auto narrow = titles_of(live_frame(report, {.columns = 80}));
  EXPECT_THAT(narrow, IsSupersetOf({"STEP ms", "INPUT%", "PEERS%", "GPU%", "CPU%"}));
  EXPECT_THAT(narrow, Not(Contains("MHz")));
  EXPECT_THAT(titles_of(live_frame(report, {.sort = "mhz", .columns = 40})), Contains("MHz"));
  const LiveFrame wide = live_frame(report, {.columns = 200});
  EXPECT_THAT(titles_of(wide), Contains("MHz"));
  EXPECT_EQ(titles_of(wide).back(), "SLOWED BY");
  EXPECT_EQ(cells_of(wide.lines.at(2)).back(), "power");
}

TEST(LiveFrame, LongLines_AreWrappedAtWords) {
  LiveReport report = sample(2);
  report.mutable_bottleneck()->set_line(
      "bottleneck: straggler (rank 1), 38 % of the step: rank 1 (local rank 1) on node 0 has no "
      "core for 37 % of its step");
  auto lines = live_frame(report, {.columns = 50}).lines;
  for (const std::string& line : lines) EXPECT_LE(line.size(), 50u) << line;
  lines.resize(5);
  EXPECT_THAT(
      lines,
      ElementsAre("job night  1:15  2 nodes, 2 ranks  step 1200/9000", "loss 1.25  ETA 10:00",
                  "bottleneck: straggler (rank 1), 38 % of the step:",
                  "rank 1 (local rank 1) on node 0 has no core for 37", "% of its step"));
  // A low screen has few lines for it; a word without an end is cut.
  EXPECT_EQ(live_frame(report, {.columns = 50, .rows = 8}).lines.size(), 6u);
  report.mutable_bottleneck()->set_line(std::string(300, 'x'));
  for (const std::string& line : live_frame(report, {.columns = 50}).lines) {
    EXPECT_LE(line.size(), 50u) << line;
  }
}

TEST(LiveKeyLine, ColumnsOfTheFrame_HaveTheirKeys) {
  const LiveFrame frame = live_frame(sample(2), {.columns = 200});
  const LiveViewOptions wide = {.sort = "ms", .columns = 200}, narrow = {.sort = "memory"};
  EXPECT_THAT(live_key_line(frame, wide), HasSubstr("  s step  [m ms]  S samples"));
  EXPECT_THAT(live_key_line(frame, wide), Not(HasSubstr("gpu")));
  EXPECT_THAT(live_key_line(frame, narrow), EndsWith(" r n s m S i p c [M]"));
  EXPECT_EQ(live_key_line(frame, {.columns = 30}).size(), 30u);
}

TEST(LiveKeyboard, EachColumn_HasItsLetter) {
  LiveReport report = sample(16);
  for (LiveRank& rank : *report.mutable_ranks()) {
    rank.set_loss(1.25);
    rank.mutable_servers()->set_queued(3);
    rank.mutable_servers()->set_stale(2);
    add_gpu(&rank);
  }
  const LiveFrame frame = live_frame(report, {.columns = 200});
  ASSERT_EQ(frame.keys.size(), live_sort_keys().size());
  for (const LiveKey& key : frame.keys) {
    LiveKeyboard keyboard;
    LiveViewOptions view = {.sort = "", .first = 5};
    EXPECT_EQ(keyboard.press(key.letter, frame, &view), LiveKeyboard::Act::kRedraw);
    EXPECT_EQ(view.sort, key.sort);
    EXPECT_EQ(view.first, 0);
  }
  LiveKeyboard keyboard;
  LiveViewOptions view;
  EXPECT_EQ(keyboard.press('G', live_frame(sample(2), {}), &view), LiveKeyboard::Act::kNone);
  EXPECT_EQ(view.sort, "rank");
  EXPECT_EQ(keyboard.press('q', frame, &view), LiveKeyboard::Act::kEnd);
}

// The bytes of a key that scrolls, and the row at which the frame then begins.
TEST(LiveKeyboard, ArrowsAndPages_Scroll) {
  LiveKeyboard keyboard;
  LiveViewOptions view = {.rows = 24};
  const LiveReport report = sample(100);
  const auto begins_after = [&](const std::string& bytes) {
    LiveFrame frame = live_frame(report, view);
    view.first = frame.first;
    for (const char byte : bytes) keyboard.press(byte, frame, &view);
    frame = live_frame(report, view);
    EXPECT_EQ(frame.lines.size(), 24u);
    EXPECT_EQ(frame.shown, 20);
    return frame.first;
  };
  EXPECT_EQ(begins_after("\x1b[B"), 1);
  EXPECT_EQ(begins_after("jj\x1bOB"), 4);
  EXPECT_EQ(begins_after("k\x1b[A"), 2);
  EXPECT_EQ(begins_after("\x1b[6~"), 22);
  EXPECT_EQ(begins_after("\x1b[5~\x1b[5~"), 0);
  EXPECT_EQ(begins_after("\x1b[F"), 80);
  EXPECT_EQ(begins_after("\x1b[6~"), 80);
  EXPECT_EQ(cells_of(live_frame(report, view).lines.at(2))[0], "80");
  EXPECT_EQ(begins_after("\x1b[1~"), 0);
}

TEST(LiveKeyboard, Help_ListsTheKeysUntilTheNextOne) {
  LiveReport report = sample(2);
  LiveKeyboard keyboard;
  LiveViewOptions view = {.columns = 40, .rows = 23};
  LiveFrame frame = live_frame(report, view);
  EXPECT_EQ(keyboard.press('?', frame, &view), LiveKeyboard::Act::kRedraw);
  frame = live_frame(report, view);
  EXPECT_LE(frame.lines.size(), 23u);
  for (const LiveKey& key : frame.keys) {
    EXPECT_THAT(frame.text(), HasSubstr(std::string(1, key.letter) + "=" + key.title.substr(0, 4)));
  }
  for (const std::string& line : frame.lines) EXPECT_LE(line.size(), 40u) << line;
  EXPECT_EQ(keyboard.press('x', frame, &view), LiveKeyboard::Act::kRedraw);
  EXPECT_FALSE(view.help);
}

TEST(LiveFrame, Nodes_HaveTheSumsOfTheirRanks) {
  LiveReport report = sample(16);
  for (LiveRank& rank : *report.mutable_ranks()) add_gpu(&rank);  // GPU 0 of its node
  report.mutable_ranks(9)->set_slowest(true);
  report.mutable_ranks(9)->set_step(1190);
  LiveKeyboard keyboard;
  LiveViewOptions view = {.columns = 200};
  EXPECT_EQ(keyboard.press('N', live_frame(report, view), &view), LiveKeyboard::Act::kRedraw);
  const LiveFrame frame = live_frame(report, view);
  ASSERT_EQ(frame.lines.size(), 5u);
  const std::vector<std::string> titles = titles_of(frame);
  const auto value = [&](size_t line, const std::string& title) {
    const auto at = std::ranges::find(titles, title) - titles.begin();
    return cells_of(frame.lines.at(line)).at(static_cast<size_t>(at));
  };
  EXPECT_EQ(value(2, "NODE"), "0");
  EXPECT_EQ(value(3, "NODE"), "1*");
  EXPECT_EQ(value(2, "CPU%"), "1200");
  EXPECT_EQ(value(2, "RSS"), "12.0G");
  EXPECT_EQ(value(2, "GPU MEM"), "70.0G");
  EXPECT_EQ(value(2, "INPUT%"), "5");
  EXPECT_EQ(value(2, "STEP ms"), "107");
  EXPECT_EQ(value(3, "STEP"), "1190");
  EXPECT_EQ(value(4, "CPU%"), "2400");
  EXPECT_EQ(value(4, "GPU MEM"), "140G");
}

TEST(LiveFrame, Colours_ChangeNothingElse) {
  LiveReport report = sample(4);
  report.mutable_bottleneck()->set_line("bottleneck: input");
  report.mutable_ranks(2)->set_slowest(true);
  for (LiveRank& rank : *report.mutable_ranks()) add_gpu(&rank);
  const LiveViewOptions plain = {.sort = "cpu", .columns = 200};
  LiveViewOptions coloured = plain;
  coloured.colors = true;
  EXPECT_EQ(live_frame(report, plain).text().find('\x1b'), std::string::npos);
  EXPECT_THAT(live_frame(report, coloured).lines.at(5), HasSubstr("\x1b[33m2*\x1b[0m"));
  for (size_t line = 0; line < live_frame(report, plain).lines.size(); ++line) {
    EXPECT_EQ(resolve_output(live_frame(report, coloured).lines.at(line)),
              live_frame(report, plain).lines.at(line));
  }
}

TEST(LiveFrame, SortKey_PutsTheLargestFirstAndTheUnknownLast) {
  LiveReport report = sample(3);
  report.mutable_ranks(0)->clear_step_ms();
  const auto lines = live_frame(report, {.sort = "ms"}).lines;
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(cells_of(lines[2])[0], "2");
  EXPECT_EQ(cells_of(lines[3])[0], "1");
  EXPECT_EQ(cells_of(lines[4])[0], "0");
}

TEST(LiveFrame, MoreRanksThanRows_AreCounted) {
  LiveReport report = sample(100);
  report.set_left_out(5);
  const auto lines = live_frame(report, {.rows = 10, .first = 3}).lines;
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_EQ(cells_of(lines.at(2))[0], "3");
  EXPECT_EQ(cells_of(lines.at(8))[0], "all");
  EXPECT_EQ(lines.back(), "ranks 4-9 of 105");
  EXPECT_EQ(live_frame(sample(8), {.rows = 10}).lines.size(), 10u);
}

// As after a terminal was made smaller.
TEST(LiveFrame, FewRows_AreNotExceeded) {
  LiveReport report = sample(100);
  report.mutable_bottleneck()->set_line(std::string(300, 'x'));
  for (int rows = 1; rows < 30; ++rows) {
    const LiveViewOptions view = {.columns = 40, .rows = rows, .first = 98, .note = "no answer"};
    const LiveFrame frame = live_frame(report, view);
    EXPECT_LE(frame.lines.size(), static_cast<size_t>(rows));
    EXPECT_EQ(frame.lines.back(), "no answer");
  }
}

TEST(LiveFrame, NamesOfOthers_CannotMoveTheCursor) {
  LiveReport report = sample(1);
  report.set_job_id("a\x1b[2Jb");
  report.mutable_bottleneck()->set_line("slow\x1b[2J\nline");
  const std::string frame = live_frame(report, {}).text();
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
    EXPECT_EQ(live_frame(report, {.sort = key, .columns = 200}).lines.size(), 7u) << key;
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
  const std::string frame = live_frame(parsed, {.sort = "ms", .columns = 200}).text();
  const std::chrono::duration<double, std::milli> text = std::chrono::steady_clock::now() - begin;
  const std::string json = live_json(parsed, "ms", 0);
  const std::chrono::duration<double, std::milli> both = std::chrono::steady_clock::now() - begin;
  std::printf("a frame of 1000 ranks: %.2f ms as text, %.2f ms as JSON; %zu bytes on the wire\n",
              text.count(), (both - text).count(), bytes.size());
  EXPECT_EQ(lines_of(frame).size(), 1003u);  // with the head, the titles and the sums
  EXPECT_EQ(nlohmann::json::parse(json)["ranks"].size(), 1000u);
}

}  // namespace
}  // namespace fleet
