#include "launch/planning/via_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/planning/arguments.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

std::vector<NodeProcesses> processes(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--via=ssh", "p"});
  const LaunchConfig config = parse_arguments(arguments).config;
  return expected_processes(config, config.nodes.listed.value);
}

TEST(ExpectedProcesses, RanksAreCountedAcrossNodes) {
  EXPECT_THAT(processes({"--ips=a,b", "--nproc_per_node=2"})[1].ranks, ElementsAre(2, 3));
  EXPECT_THAT(processes({"--ips=a:1,b:3"})[1].ranks, ElementsAre(1, 2, 3));
  EXPECT_THAT(processes({"--ips=a,b", "--gpus=4,5"})[1].ranks, ElementsAre(2, 3));
  EXPECT_THAT(processes({"--ips=a:8,b:8", "--nproc_per_node=1"})[1].ranks, ElementsAre(1));
}

TEST(ExpectedProcesses, WhatTheNodesGpusDecide_IsNotKnownHere) {
  const auto all = processes({"--ips=a:2,b,c:2"});
  EXPECT_TRUE(all[0].known);
  EXPECT_FALSE(all[1].known);
  EXPECT_FALSE(all[2].known);
}

TEST(ExpectedProcesses, ServersAndTrainers) {
  const auto counted = processes({"--ips=a,b", "--server_num=1", "--worker_num=2"});
  EXPECT_THAT(counted[1].servers, ElementsAre(1));
  EXPECT_THAT(counted[1].ranks, ElementsAre(2, 3));
  const auto listed = processes({"--servers=a:1,b:1", "--workers=b,a,b"});
  EXPECT_THAT(listed[0].ranks, ElementsAre(1));
  EXPECT_THAT(listed[1].ranks, ElementsAre(0, 2));
}

}  // namespace
}  // namespace fleet
