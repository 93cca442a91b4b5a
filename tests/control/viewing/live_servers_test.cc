// Parameter servers in frames and JSON of fleetrun top.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/terminal_text.h"
#include "viewing/live_view.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using wire::LiveRank;

LiveReport with_servers(int trainers, int servers) {
  LiveReport report;
  report.set_job_id("clicks");
  report.set_nnodes(1);
  report.set_world_size(trainers);
  report.set_running_ms(41'000);
  report.set_step(1630);
  for (int number = 0; number < trainers; ++number) {
    LiveRank* rank = report.add_ranks();
    rank->set_rank(number);
    rank->set_step(1630);
    rank->set_step_ms(24.9);
    rank->set_samples_per_second(20562);
    rank->set_input_share(0.02);
    rank->set_exposed_share(0.31);
    rank->set_loss(0.442);
    rank->set_cpu(0.8);
    rank->set_memory(int64_t{212} << 20);
    rank->mutable_servers()->set_values_share(0.2);
  }
  for (int number = 0; number < servers; ++number) {
    LiveRank* rank = report.add_ranks();
    rank->set_server(true);
    rank->set_rank(number);
    rank->set_slowest(number == servers - 1);
    rank->set_cpu(0.35);
    rank->set_memory(int64_t{96} << 20);
    wire::LiveServer& server = *rank->mutable_serving();
    server.set_state(wire::ServerReport::SERVING);
    server.set_address("10.0.0.1:617" + std::to_string(number));
    server.set_blocks(4);
    server.set_block_bytes(3 << 20);
    server.set_rows(512'000);
    server.set_table_bytes(int64_t{37} << 20);
    server.set_pushes(80.3);
    server.set_received(41.2e6);
    server.set_sent(40.8e6);
    server.set_busy(0.33);
    server.set_answer_ms(number == servers - 1 ? 7.9 : 4.1);
    server.set_step(1630);
    wire::LiveTable& table = *server.add_tables();
    table.set_name("embedding");
    table.set_rows(512'000);
    table.set_pulled(310'000);
    table.set_pushed(310'000);
  }
  return report;
}

// The example of docs/how-to/parameter_servers.md.
TEST(LiveFrame, Servers_HaveATableBelowTheTrainers) {
  const std::vector<std::string> lines = {
      "job clicks  0:41  1 node, 2 ranks  step 1630",
      "RANK  STEP  STEP ms  SAMPLES/s  INPUT%  PEERS%   LOSS  CPU%   RSS",
      "   0  1630     24.9      20562       2      31  0.442    80  212M",
      "   1  1630     24.9      20562       2      31  0.442    80  212M",
      " all  1630     24.9      41124       2      31  0.442   160  424M",
      "SERVER   STATE    ROWS  HELD  PUSH/s  IN MB/s  OUT MB/s  BUSY%  ANSWER ms  CPU%",
      "    s0  serves  512.0k   40M    80.3     41.2      40.8     33        4.1    35",
      "   s1*  serves  512.0k   40M    80.3     41.2      40.8     33        7.9    35"};
  EXPECT_EQ(live_frame(with_servers(2, 2), {.columns = 80, .rows = 23}).lines, lines);
}

TEST(LiveFrame, ServersOnANarrowTerminal_KeepTheirNumbersAndBusyTimes) {
  const LiveFrame frame = live_frame(with_servers(2, 2), {.columns = 40, .rows = 23});
  for (const std::string& line : frame.lines) EXPECT_LE(columns_of_text(line), 40u) << line;
  EXPECT_THAT(frame.lines[frame.lines.size() - 3], StartsWith("SERVER"));
  EXPECT_THAT(frame.lines[frame.lines.size() - 3], HasSubstr("BUSY%"));
  EXPECT_THAT(frame.lines.back(), HasSubstr("s1*"));
}

TEST(LiveFrame, ManyServersOnAFewRows_ShowTheSlowestOne) {
  const LiveFrame frame = live_frame(with_servers(30, 40), {.columns = 80, .rows = 23});
  EXPECT_EQ(frame.lines.size(), 23u);
  int servers = 0;
  bool slowest = false;
  for (const std::string& line : frame.lines) {
    servers += line.find("serves") != std::string::npos;
    slowest |= line.find("s39*") != std::string::npos;
  }
  EXPECT_TRUE(slowest);
  EXPECT_GE(servers, 5);
  EXPECT_GE(frame.shown, 5);
}

TEST(LiveFrame, ServersOfAnyProgram_ShowCpuAndMemory) {
  LiveReport report = with_servers(1, 1);
  report.mutable_ranks(1)->clear_serving();
  const std::vector<std::string> lines = live_frame(report, {.columns = 80}).lines;
  EXPECT_EQ(lines[lines.size() - 2], "SERVER  CPU%  RSS");
  EXPECT_EQ(lines.back(), "   s0*    35  96M");
}

TEST(LiveFrame, NodeSums_LeaveServersTheirTable) {
  const LiveFrame frame = live_frame(with_servers(2, 2), {.columns = 80, .by_node = true});
  EXPECT_THAT(frame.lines[2], HasSubstr("424M"));  // of the trainers
  EXPECT_THAT(frame.lines.back(), HasSubstr("s1*"));
}

TEST(LiveJson, Servers_HaveTheirTables) {
  const auto json = nlohmann::json::parse(live_json(with_servers(1, 1), "rank", 0));
  EXPECT_FALSE(json["ranks"][0].contains("serving"));
  EXPECT_EQ(json["ranks"][0]["servers"]["values_share"], 0.2);
  const auto& server = json["ranks"][1]["serving"];
  EXPECT_EQ(server["state"], "serves");
  EXPECT_EQ(server["busy"], 0.33);
  EXPECT_EQ(server["tables"][0]["name"], "embedding");
  EXPECT_EQ(server["tables"][0]["rows"], 512'000);
}

TEST(LiveJson, JobWithoutServers_HasNoKeysOfServers) {
  const auto json = nlohmann::json::parse(live_json(with_servers(0, 0), "rank", 0));
  EXPECT_THAT(json["ranks"], ElementsAre());
  LiveReport plain;
  plain.add_ranks();
  const auto rank = nlohmann::json::parse(live_json(plain, "rank", 0))["ranks"][0];
  EXPECT_FALSE(rank.contains("serving") || rank.contains("servers"));
}

}  // namespace
}  // namespace fleet
