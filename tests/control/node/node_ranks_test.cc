#include "node/node_ranks.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr NodeRanks::Time kStart = NodeRanks::Time() + 100s;

// Node 1 of two, each with server 0 or 1 as its first process, and one trainer.
NodeRanks ranks_with_a_server() {
  auto world = std::make_shared<World>(*sample_assignment().world);
  for (wire::Node& node : *world->mutable_nodes()) node.set_servers(1);
  number_ranks(world.get());
  Assignment assignment;
  assignment.world = world;
  assignment.node_rank = 1;
  wire::SpawnRanks commands;
  for (const char* log : {"log/serverlog.1", "log/workerlog.1"}) {
    commands.add_ranks()->set_log_path(log);
  }
  return {assignment, commands, kStart};
}

TEST(NodeRanks, EndOfAServer_IsNumberedAmongServers) {
  RankExit exit = ended(0, 7, 0, "");
  const NodeRanks ranks = ranks_with_a_server();
  ranks.complete(&exit, kStart + 1500ms);
  EXPECT_TRUE(exit.server());
  EXPECT_EQ(exit.rank(), 1);
  EXPECT_EQ(exit.node_rank(), 1);
  EXPECT_EQ(exit.ran_for_ms(), 1500);
  EXPECT_EQ(exit.log_path(), "log/serverlog.1");
  EXPECT_EQ(ranks.name(0), "server 1");
  EXPECT_EQ(ranks.name(1), "rank 1");
}

TEST(NodeRanks, OnlyTheLastTrainer_IsTheLast) {
  NodeRanks ranks = ranks_with_a_server();
  EXPECT_EQ(ranks.running_trainers(), 1);
  EXPECT_FALSE(ranks.on_success(ended(0, 0, 0, ""), kStart));
  EXPECT_TRUE(ranks.on_success(ended(1, 0, 0, ""), kStart));
  EXPECT_EQ(ranks.running_trainers(), 0);
}

TEST(NodeRanks, Signal_IsHintedAtUnlessItIsExplained) {
  const NodeRanks ranks = ranks_with_a_server();
  RankExit bus = ended(1, 0, SIGBUS, ""), stage = bus, known = bus, ours = bus;
  stage.set_note("stage 1 of 2");
  known.set_note("the disk is full");
  ours.set_note("stage 1 of 2");
  ours.set_killed_by_us(true);
  for (RankExit* exit : {&bus, &stage, &known, &ours}) ranks.complete(exit, kStart);
  EXPECT_THAT(bus.note(), ::testing::HasSubstr("full /dev/shm"));
  EXPECT_EQ(stage.note(), "stage 1 of 2; " + bus.note());
  EXPECT_EQ(known.note(), "the disk is full");
  EXPECT_EQ(ours.note(), "");
}

TEST(NodeRanks, Stacks_HaveTheRanksThatEndedWell) {
  NodeRanks ranks = ranks_with_a_server();
  ranks.on_success(ended(1, 0, 0, ""), kStart);
  const Stacks stacks = ranks.completed(Stacks(), kStart + 2s);
  ASSERT_EQ(stacks.endings_size(), 1);
  EXPECT_TRUE(stacks.endings(0).ended());
  EXPECT_EQ(stacks.endings(0).rank(), 1);
  EXPECT_EQ(stacks.endings(0).ago_ms(), 2000);
  EXPECT_EQ(stacks.endings(0).log_path(), "log/workerlog.1");
}

}  // namespace
}  // namespace fleet
