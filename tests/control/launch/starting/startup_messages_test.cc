#include "launch/starting/startup_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "launch/planning/arguments.h"

namespace fleet {
namespace {

using ::testing::IsSupersetOf;

// The table printed in Paddle's documents, in the order of the older Python that printed it.
TEST(EnvironmentTable, PublishedSample_IsReproducedByteForByte) {
  std::string endpoints;
  for (int i = 0; i < 5; ++i) endpoints += "127.0.0.1:12345,";
  const Variables variables = {
      {"PADDLE_CURRENT_ENDPOINT", "127.0.0.1:28355"},
      {"PADDLE_TRAINERS_NUM", "8"},
      {"PADDLE_TRAINER_ENDPOINTS", endpoints + "127.0.0.1:33653,127.0.0.1:27766,127.0.0.1:16631"},
      {"FLAGS_selected_gpus", "0"},
      {"PADDLE_TRAINER_ID", "0"},
  };
  EXPECT_EQ(
      environment_table(variables),
      "    "
      "+=======================================================================================+\n"
      "    |                        Distributed Envs                      Value                    "
      "|\n"
      "    "
      "+---------------------------------------------------------------------------------------+\n"
      "    |                 PADDLE_CURRENT_ENDPOINT                 127.0.0.1:28355               "
      "|\n"
      "    |                     PADDLE_TRAINERS_NUM                        8                      "
      "|\n"
      "    |                PADDLE_TRAINER_ENDPOINTS  ... "
      "0.1:33653,127.0.0.1:27766,127.0.0.1:16631|\n"
      "    |                     FLAGS_selected_gpus                        0                      "
      "|\n"
      "    |                       PADDLE_TRAINER_ID                        0                      "
      "|\n"
      "    "
      "+=======================================================================================+");
}

TEST(EnvironmentTable, ValueOf44And45Characters_OnlyTheLatterIsCut) {
  const std::string long_key = "KEY";
  const std::string table =
      environment_table({{long_key, std::string(44, 'a')}, {long_key, std::string(45, 'b')}});
  EXPECT_NE(table.find("  " + std::string(44, 'a') + " |"), std::string::npos) << table;
  EXPECT_NE(table.find("  ... " + std::string(41, 'b') + "|"), std::string::npos) << table;
}

TEST(EnvironmentTable, LongKey_WidensTheTable) {
  const std::string key(50, 'K');
  const std::string table = environment_table({{key, "v"}});
  EXPECT_TRUE(table.starts_with("    +" + std::string(97, '=') + "+\n")) << table;
  EXPECT_NE(table.find("    |" + key + "  "), std::string::npos);
}

TEST(EnvironmentTable, NarrowTerminal_GetsANarrowTable) {
  const Variables variables = {{"PADDLE_TRAINER_ENDPOINTS", "127.0.0.1:33653,127.0.0.1:27766"},
                               {"PADDLE_TRAINER_ID", "0"}};
  const std::string border = "+" + std::string(57, '=') + "+";
  EXPECT_EQ(environment_table(variables, TableStyle::kAuto, 60),
            border +
                "\n|        Distributed Envs               Value             |\n"
                "+---------------------------------------------------------+\n"
                "|PADDLE_TRAINER_ENDPOINTS  ... 0.0.1:33653,127.0.0.1:27766|\n"
                "|       PADDLE_TRAINER_ID                 0               |\n" +
                border);
}

TEST(EnvironmentTable, Layout_FollowsTheTerminalUnlessOverridden) {
  const Variables variables = {{"RANK", "0"}};
  const std::string paddles = environment_table(variables);
  EXPECT_EQ(environment_table(variables, TableStyle::kAuto, 0), paddles);
  EXPECT_EQ(environment_table(variables, TableStyle::kAuto, 93), paddles);
  EXPECT_NE(environment_table(variables, TableStyle::kAuto, 92), paddles);
  EXPECT_EQ(environment_table(variables, TableStyle::kPaddle, 40), paddles);
  EXPECT_NE(environment_table(variables, TableStyle::kNarrow, 200), paddles);
}

TEST(ConfigurationBlock, ByDefault_ShowsWhatDiffers) {
  const LaunchRequest request = parse_arguments(
      {"--gpus=0,1", "--grace=10", "--table=paddle", "--rdzv_timeout=5", "train.py"});
  EXPECT_EQ(configuration_block(request.settings, request.program, false),
            "-----------  Configuration Arguments -----------\n"
            "gpus: 0,1\n"
            "rdzv_timeout: 5\n"
            "table: paddle\n"
            "training_script: train.py\n"
            "training_script_args: []\n"
            "------------------------------------------------\n");
}

// As Paddle prints it, sorted. A new option adds its line without an edit here.
TEST(ConfigurationBlock, OfAllOptions_IsPaddles) {
  const LaunchRequest request =
      parse_arguments({"--gpus=0,1", "--ips=10.0.0.1, 10.0.0.2", "train.py", "--lr", "it's"});
  const std::vector<std::string> lines =
      split(configuration_block(request.settings, request.program, true), '\n');
  ASSERT_GT(lines.size(), 4u);
  EXPECT_EQ(lines.front(), "-----------  Configuration Arguments -----------");
  EXPECT_EQ(lines[lines.size() - 2], "------------------------------------------------");
  EXPECT_EQ(lines.back(), "");
  EXPECT_TRUE(std::is_sorted(lines.begin() + 1, lines.end() - 2));
  EXPECT_THAT(lines, IsSupersetOf({"elastic_timeout: 30",
                                   "gpus: 0,1",
                                   "grace: 10",
                                   "hang_timeout: None",
                                   "heartbeat_timeout: 15",
                                   "host: None",
                                   "ips: 10.0.0.1,10.0.0.2",
                                   "job_id: default",
                                   "local_ranks_filter: None",
                                   "log_dir: log",
                                   "log_level: INFO",
                                   "master: None",
                                   "max_restart: None",
                                   "nnodes: None",
                                   "no_progress_restarts: 3",
                                   "nproc_per_node: None",
                                   "quiet: False",
                                   "rank: None",
                                   "ranks: None",
                                   "rdzv_port: None",
                                   "rdzv_timeout: 300",
                                   "run_mode: collective",
                                   "server_num: None",
                                   "servers: None",
                                   "start_port: None",
                                   "training_script: train.py",
                                   "training_script_args: ['--lr', 'it\\'s']",
                                   "with_gloo: 1",
                                   "worker_num: None",
                                   "workers: None"}));
}

TEST(WorldText, CountsRanksNodesAndServers) {
  World world;
  world.add_nodes();
  world.set_world_size(1);
  EXPECT_EQ(world_text(world), "1 rank on 1 node");
  world.add_nodes();
  world.set_world_size(8);
  EXPECT_EQ(world_text(world), "8 ranks on 2 nodes");
  world.set_servers(2);
  EXPECT_EQ(world_text(world), "2 servers and 8 ranks on 2 nodes");
}

TEST(ElapsedText, FollowsItsLength) {
  using namespace std::chrono_literals;
  EXPECT_EQ(elapsed_text(40ms), "0.0 s");
  EXPECT_EQ(elapsed_text(12'340ms), "12.3 s");
  EXPECT_EQ(elapsed_text(60s), "1:00");
  EXPECT_EQ(elapsed_text(3'723s), "1:02:03");
}

TEST(EndpointsLog, ListsEveryRank) {
  World world;
  for (const char* address : {"10.0.0.1", "::1"}) world.add_nodes()->set_address(address);
  for (const int port : {6070, 6071}) add_rank(world.mutable_nodes(0), {}, port);
  add_rank(world.mutable_nodes(1), {}, 6070);
  number_ranks(&world);
  EXPECT_EQ(endpoints_log(world),
            "PADDLE_TRAINER_ENDPOINTS: \n10.0.0.1:6070\n10.0.0.1:6071\n[::1]:6070\n");
}

}  // namespace
}  // namespace fleet
