#include "launch/dry_run/via_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/arguments.h"
#include "launch/topology.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<NodeProcesses> processes(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--via=ssh", "p"});
  const Settings settings = parse_arguments(arguments).settings;
  return expected_processes(settings, listed_nodes(settings));
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

ViaPlan sample(size_t nodes) {
  ViaPlan plan;
  plan.job_id = "night";
  plan.via = "ssh";
  plan.program = {"train.py", "--name", "a b"};
  plan.environment = {{"FLEET_JOB_SECRET", "t0p"}, {"NCCL_DEBUG", "WARN"}};
  plan.notes = {"something is assumed"};
  for (size_t k = 0; k < nodes; ++k) {
    const std::string name = "n" + std::to_string(k);
    plan.nodes.push_back({name,
                          "ssh to " + name,
                          "/data",
                          "log/" + name,
                          "all",
                          {k == 0, {}, k == 0 ? std::vector<int>{0, 1} : std::vector<int>{}},
                          {"ssh", name},
                          {"fleetrun", "--", "train.py", "--name", "a b"}});
  }
  return plan;
}

TEST(ViaTable, SaysWhatRunsWhere) {
  std::ostringstream out;
  write_via_table(sample(2), out);
  EXPECT_THAT(
      out.str(),
      AllOf(HasSubstr("job 'night' on 2 nodes with --via=ssh; dry run, nothing starts"),
            HasSubstr("0     n0       ssh to n0  ranks 0-1                all   /data   log/n0"),
            HasSubstr("one per GPU of the node"),
            HasSubstr("node 1 (n1) is reached by\n  ssh n1\n"),
            HasSubstr("node 1 (n1) runs\n  fleetrun -- train.py --name 'a b'\n"),
            HasSubstr("NCCL_DEBUG        WARN"), Not(HasSubstr("t0p"))));
}

TEST(ViaTable, ManyNodes_ShowOneCommand) {
  std::ostringstream out;
  write_via_table(sample(20), out);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("19    n19"), HasSubstr("node 0 (n0) runs"),
                               Not(HasSubstr("node 1 (n1) runs")), HasSubstr("are similar")));
}

TEST(ViaJson, HasEverything) {
  std::ostringstream out;
  write_via_json(sample(20), out);
  const auto all = nlohmann::json::parse(out.str());
  EXPECT_EQ(all["via"], "ssh");
  EXPECT_EQ(all["environment"]["FLEET_JOB_SECRET"], "******");
  ASSERT_EQ(all["nodes"].size(), 20u);
  EXPECT_EQ(all["nodes"][0]["ranks"], (std::vector<int>{0, 1}));
  EXPECT_EQ(all["nodes"][1]["ranks"], nullptr);
  EXPECT_EQ(all["nodes"][19]["command"].size(), 5u);
}

}  // namespace
}  // namespace fleet
