#include "launch/planning/cluster_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "tests/errors.h"

namespace fleet {
namespace {

struct ClusterEnvironmentTest : ::testing::Test {
  void read_cluster() {
    ClusterEnvironment cluster;
    cluster.environment = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    };
    cluster.host_name = [this] { return host; };
    cluster.canonical_name = [this] { return canonical; };
    add_cluster_settings(cluster, &tree);
  }
  Error refusal() {
    return thrown_by([&] { read_cluster(); });
  }
  std::string at(const std::string& key) { return tree.peek(key).value_or("-"); }

  std::map<std::string, std::string> environment;
  std::string host = "train-3", canonical = "train-3.train.default.svc.cluster.local";
  ConfigTree tree;
};

TEST_F(ClusterEnvironmentTest, NothingSpecial_AddsNothing) {
  read_cluster();
  for (const char* key : {"ips", "host", "rank", "master", "job_id", "start_port", "rdzv_port"}) {
    EXPECT_EQ(at(key), "-") << key;
  }
}

struct InSlurm : ClusterEnvironmentTest {
  InSlurm() {
    environment = {{"SLURM_JOB_ID", "4711"},
                   {"SLURM_STEP_ID", "2"},
                   {"SLURM_STEP_NODELIST", "n[08-10]"},
                   {"SLURM_STEP_NUM_NODES", "3"},
                   {"SLURM_STEP_NUM_TASKS", "3"},
                   {"SLURM_NODEID", "1"}};
  }
};

TEST_F(InSlurm, ViaSlurm_OtherNodesAreParts) {
  environment["FLEET_VIA"] = "slurm";
  read_cluster();
  EXPECT_EQ(at("part"), "true");
  environment["SLURM_NODEID"] = "0";
  tree = {};
  read_cluster();
  EXPECT_EQ(at("part"), "-");
}

TEST_F(InSlurm, ListsOfServersAndWorkers_AreTheNodes) {
  tree.set("servers", "n08:6000", "--servers");
  tree.set("workers", "n08,n09", "--workers");
  read_cluster();
  EXPECT_EQ(at("ips"), "-");
}

TEST_F(InSlurm, OneANode_IsTheWholeJob) {
  read_cluster();
  EXPECT_EQ(at("ips"), "n08,n09,n10");
  EXPECT_EQ(at("host"), "n09");
  EXPECT_EQ(at("job_id"), "slurm-4711.2");
  EXPECT_EQ(at("log_dir"), "log/node1");
  const int start = std::stoi(at("start_port")), rendezvous = std::stoi(at("rdzv_port"));
  EXPECT_GE(start, 10'000);
  EXPECT_LE(rendezvous, 32'767);
  EXPECT_GT(rendezvous, start + 64);
}

TEST_F(InSlurm, StepsAndJobs_HaveOtherPorts) {
  read_cluster();
  const std::string first = at("start_port");
  tree = ConfigTree();
  environment["SLURM_STEP_ID"] = "3";
  read_cluster();
  EXPECT_NE(at("start_port"), first);
  tree = ConfigTree();
  environment["SLURM_STEP_ID"] = "2";
  environment["SLURM_JOB_ID"] = "4712";
  read_cluster();
  EXPECT_NE(at("start_port"), first);
}

TEST_F(InSlurm, WhatTheUserGives_Wins) {
  tree.set("job_id", "mine", "--job_id");
  tree.set("rdzv_port", "7000", "--rdzv_port");
  tree.set("log_dir", "/shared/run7", "--log_dir");
  read_cluster();
  EXPECT_EQ(at("log_dir"), "/shared/run7/node1");
  EXPECT_EQ(at("job_id"), "mine");
  EXPECT_EQ(at("rdzv_port"), "7000");
  EXPECT_EQ(at("ips"), "n08,n09,n10");
}

TEST_F(InSlurm, NodesOfTheUsersOwn_LeaveSlurmOut) {
  for (const char* key : {"ips", "master", "nnodes", "host", "rank"}) {
    tree = ConfigTree();
    tree.set(key, "1", std::string("--") + key);
    read_cluster();
    EXPECT_EQ(at("job_id"), "-") << key;
  }
}

TEST_F(InSlurm, SeveralANode_AreRefused) {
  environment["SLURM_STEP_NUM_TASKS"] = "6";
  EXPECT_THAT(refusal(), IsUsageError("SLURM_STEP_NUM_TASKS"));
}

TEST_F(InSlurm, OneNode_IsAnOrdinaryJob) {
  environment["SLURM_STEP_NODELIST"] = "n08";
  environment["SLURM_STEP_NUM_NODES"] = environment["SLURM_STEP_NUM_TASKS"] = "1";
  environment["SLURM_NODEID"] = "0";
  read_cluster();
  EXPECT_EQ(at("ips"), "-");
}

TEST_F(InSlurm, BatchScript_IsNoStep) {
  environment.erase("SLURM_STEP_NODELIST");
  read_cluster();
  EXPECT_EQ(at("ips"), "-");
}

TEST_F(InSlurm, ListOfAnotherLength_IsRefused) {
  environment["SLURM_STEP_NODELIST"] = "n[08-09]";
  EXPECT_THAT(refusal(), IsUsageError("environment SLURM_STEP_NODELIST n[08-09]"));
}

struct InKubernetes : ClusterEnvironmentTest {
  InKubernetes() {
    environment = {{"JOB_COMPLETION_INDEX", "3"}, {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
    tree.set("nnodes", "4", "environment PADDLE_NNODES");
  }
};

TEST_F(InKubernetes, IndexedJob_KnowsRankAndMaster) {
  read_cluster();
  EXPECT_EQ(at("rank"), "3");
  EXPECT_EQ(at("master"), "train-0.train.default.svc.cluster.local");
}

TEST_F(InKubernetes, WithoutNnodes_PodsAreJobsOfTheirOwn) {
  tree = ConfigTree();
  read_cluster();
  EXPECT_EQ(at("rank"), "-");
}

TEST_F(InKubernetes, MasterOfTheUser_Wins) {
  tree.set("master", "10.0.0.1", "--master");
  canonical = host;
  read_cluster();
  EXPECT_EQ(at("master"), "10.0.0.1");
  EXPECT_EQ(at("rank"), "3");
}

TEST_F(InKubernetes, PodWithoutADomain_SaysWhatToDo) {
  canonical = host;
  EXPECT_THAT(refusal(), IsUsageError("environment JOB_COMPLETION_INDEX"));
}

TEST_F(InKubernetes, OutsideOfIt_TheIndexMeansNothing) {
  environment.erase("KUBERNETES_SERVICE_HOST");
  read_cluster();
  EXPECT_EQ(at("rank"), "-");
}

}  // namespace
}  // namespace fleet
