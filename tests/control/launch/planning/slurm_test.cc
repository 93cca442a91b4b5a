#include "launch/planning/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "launch/planning/topology.h"
#include "launch/planning/torchrun/translate.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Slurm : ::testing::Test {
  std::vector<std::string> read() {
    return add_slurm_settings(
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = environment.find(name);
          if (found == environment.end()) return std::nullopt;
          return found->second;
        },
        &tree);
  }
  Error refusal() {
    return thrown_by([&] { read(); });
  }
  std::string at(const std::string& key) { return tree.peek(key).value_or("-"); }
  // The job of a node whose own addresses include every node of the step.
  Topology topology() {
    HostFacts host;
    host.addresses = {"n08", "n09", "n10"};
    host.resolve = [](const std::string& name) { return name; };
    return resolve_topology(read_launch_config(tree.validate(launch_schema())), host);
  }

  std::map<std::string, std::string> environment;
  ConfigTree tree;
};

// The second of three nodes of `srun fleetrun ...`.
struct InStep : Slurm {
  InStep() {
    environment = {{"SLURM_JOB_ID", "4711"},
                   {"SLURM_STEP_ID", "2"},
                   {"SLURM_JOB_NODELIST", "n[07-12]"},
                   {"SLURM_JOB_NUM_NODES", "6"},
                   {"SLURM_STEP_NODELIST", "n[08-10]"},
                   {"SLURM_STEP_NUM_NODES", "3"},
                   {"SLURM_STEP_NUM_TASKS", "3"},
                   {"SLURM_NODEID", "1"},
                   {"SLURM_PROCID", "1"}};
  }
  void one_node() {
    environment["SLURM_STEP_NODELIST"] = "n08";
    environment["SLURM_STEP_NUM_NODES"] = environment["SLURM_STEP_NUM_TASKS"] = "1";
    environment["SLURM_NODEID"] = environment["SLURM_PROCID"] = "0";
  }
};

TEST_F(InStep, OneTaskANode_IsOneJob) {
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_EQ(at("ips"), "n08,n09,n10");
  EXPECT_EQ(at("host"), "n09");
  EXPECT_EQ(at("job_id"), "slurm-4711.2");
  EXPECT_EQ(at("log_dir"), "log/slurm-4711.2/node1");
  const int start = std::stoi(at("start_port")), rendezvous = std::stoi(at("rdzv_port"));
  EXPECT_GE(start, 10'000);
  EXPECT_LE(rendezvous, 32'767);
  EXPECT_GT(rendezvous, start + 64);
}

TEST_F(InStep, StepsAndJobs_HaveOtherPorts) {
  read();
  const std::string first = at("start_port");
  for (const auto& [name, value] :
       {std::pair("SLURM_STEP_ID", "3"), std::pair("SLURM_JOB_ID", "4712")}) {
    tree = ConfigTree();
    const std::string before = environment[name];
    environment[name] = value;
    read();
    EXPECT_NE(at("start_port"), first) << name;
    environment[name] = before;
  }
}

TEST_F(InStep, WhatTheUserGives_Wins) {
  tree.set("job_id", "mine", "--job_id");
  tree.set("rdzv_port", "7000", "--rdzv_port");
  tree.set("log_dir", "/shared/run7", "--log_dir");
  read();
  EXPECT_EQ(at("log_dir"), "/shared/run7/node1");
  EXPECT_EQ(at("job_id"), "mine");
  EXPECT_EQ(at("rdzv_port"), "7000");
  EXPECT_EQ(at("ips"), "n08,n09,n10");
}

// As in a recipe of torchrun with --rdzv_endpoint, whose nodes share a file system too.
TEST_F(InStep, NodesOfTheUsersOwn_GetOnlyALogFolder) {
  for (const char* key : {"ips", "master", "host", "rank", "servers", "workers"}) {
    tree = ConfigTree();
    tree.set(key, "1", std::string("--") + key);
    tree.set("nnodes", "3", "--nnodes");
    read();
    EXPECT_EQ(at("job_id"), "-") << key;
    EXPECT_EQ(at("start_port"), "-") << key;
    EXPECT_EQ(at("log_dir"), "log/slurm-4711.2/node1") << key;
  }
  tree.set("log_dir", "mine", "--log_dir");
  read();
  EXPECT_EQ(at("log_dir"), "mine");
}

TEST_F(InStep, NumberOfNodes_CountsTheStepsNodes) {
  tree.set("nnodes", "3", "--nnodes");
  read();
  EXPECT_EQ(at("ips"), "n08,n09,n10");
  EXPECT_EQ(topology().nnodes, 3);
  tree.set("nnodes", "4", "--nnodes");
  EXPECT_THAT(thrown_by([&] { topology(); }), IsUsageError("--nnodes 4"));
}

TEST_F(InStep, RangeOfNodes_IsElasticWithTheStepsNodes) {
  tree.set("nnodes", "2:3", "--nnodes");
  read();
  const Topology nodes = topology();
  EXPECT_EQ(nodes.min_nodes, 2);
  EXPECT_EQ(nodes.nnodes, 3);
  EXPECT_THAT(nodes.nodes, ElementsAre("n08", "n09", "n10"));
  EXPECT_EQ(nodes.node_rank, 1);
}

// sbatch --nodes=1-8 got three.
TEST_F(InStep, RangeBeyondTheStep_EndsAtItsNodes) {
  tree.set("nnodes", "2:8", "--nnodes");
  read();
  EXPECT_EQ(topology().min_nodes, 2);
  EXPECT_EQ(topology().nnodes, 3);
  EXPECT_GT(read_launch_config(tree.validate(launch_schema())).restarts.max_restarts, 0);
  tree.set("nnodes", "4:8", "--nnodes");
  EXPECT_THAT(thrown_by([&] { topology(); }), IsUsageError("--nnodes 4:8"));
}

TEST_F(InStep, RangeWithOneNode_RunsOnIt) {
  one_node();
  tree.set("nnodes", "1:4", "--nnodes");
  read();
  EXPECT_EQ(at("log_dir"), "log/slurm-4711.2");
  EXPECT_EQ(topology().nnodes, 1);
}

TEST_F(InStep, SeveralTasksANode_AreRefusedWithALineThatWorks) {
  environment["SLURM_STEP_NUM_TASKS"] = "6";
  EXPECT_THAT(refusal(), IsUsageError("SLURM_STEP_NUM_TASKS"));
  // --ntasks-per-node alone loses against SLURM_NTASKS of the batch script.
  EXPECT_THAT(refusal(), Advises(HasSubstr("--ntasks=3 ")));
}

TEST_F(InStep, TasksThatAreSeparateJobs_HaveNamesAndLogsOfTheirOwn) {
  environment["SLURM_STEP_NUM_TASKS"] = "6";
  environment["SLURM_PROCID"] = "4";
  for (const auto& [key, value] : {std::pair("nnodes", "1"), std::pair("standalone", "true")}) {
    tree = ConfigTree();
    tree.set(key, value, std::string("--") + key);
    read();
    EXPECT_EQ(at("job_id"), "slurm-4711.2.4") << key;
    EXPECT_EQ(at("log_dir"), "log/slurm-4711.2/task4") << key;
    EXPECT_EQ(at("ips"), "-") << key;
  }
}

TEST_F(InStep, OneNode_IsAnOrdinaryJob) {
  one_node();
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_EQ(at("ips"), "-");
  EXPECT_EQ(at("start_port"), "-");
  EXPECT_EQ(at("job_id"), "slurm-4711.2");
  EXPECT_EQ(at("log_dir"), "log/slurm-4711.2");
}

TEST_F(InStep, ListOfAnotherLength_IsRefused) {
  environment["SLURM_STEP_NODELIST"] = "n[08-09]";
  EXPECT_THAT(refusal(), IsUsageError("environment SLURM_STEP_NODELIST n[08-09]"));
}

// As Slurm 22.05 sets them for srun --het-group.
TEST_F(InStep, ComponentsOfAHeterogeneousJob_AreSeparateJobs) {
  environment["SLURM_HET_SIZE"] = "2";
  for (const std::string name : {"HET", "PACK"}) {
    tree = ConfigTree();
    environment["SLURM_JOB_NODELIST_" + name + "_GROUP_0"] = "n07";
    environment["SLURM_JOB_NODELIST_" + name + "_GROUP_1"] = "n[08-12]";
    read();
    EXPECT_EQ(at("ips"), "n08,n09,n10") << name;
    tree = ConfigTree();
    environment["SLURM_JOB_NODELIST_" + name + "_GROUP_0"] = "n[07-08]";
    environment["SLURM_JOB_NODELIST_" + name + "_GROUP_1"] = "n[09-10]";
    EXPECT_THAT(refusal(), IsUsageError("environment SLURM_STEP_NODELIST n[08-10]")) << name;
    tree.set("nnodes", "1", "--nnodes");
    EXPECT_NO_THROW(read()) << name;
    environment.erase("SLURM_JOB_NODELIST_" + name + "_GROUP_0");
    environment.erase("SLURM_JOB_NODELIST_" + name + "_GROUP_1");
  }
}

TEST_F(InStep, ViaSlurm_OtherNodesAreParts) {
  environment["FLEET_VIA"] = "slurm";
  read();
  EXPECT_EQ(at("part"), "true");
  environment["SLURM_NODEID"] = "0";
  tree = {};
  read();
  EXPECT_EQ(at("part"), "-");
}

TEST_F(InStep, Torchrun_HasOneNodeUnlessAViaStartsIt) {
  tree.set("compat", "torchrun", "--compat");
  add_torchrun_defaults(&tree);
  read();
  EXPECT_EQ(at("ips"), "-");
  EXPECT_EQ(at("job_id"), "none");
  EXPECT_EQ(at("log_dir"), "-");
  environment["FLEET_VIA"] = "slurm";
  read();
  EXPECT_EQ(topology().nnodes, 3);
  EXPECT_EQ(at("log_dir"), "-");
}

// The script of `sbatch --nodes=2`.
struct InBatchScript : Slurm {
  InBatchScript() {
    environment = {{"SLURM_JOB_ID", "4711"},
                   {"SLURM_JOB_NODELIST", "n[08-09]"},
                   {"SLURM_JOB_NUM_NODES", "2"},
                   {"SLURM_NODEID", "0"}};
  }
};

TEST_F(InBatchScript, JobOfOneNode_SaysThatOthersAreUnused) {
  EXPECT_THAT(read(), ElementsAre(HasSubstr("--via=slurm")));
  EXPECT_EQ(at("ips"), "-");
  EXPECT_EQ(at("job_id"), "slurm-4711");
  EXPECT_EQ(at("log_dir"), "log/slurm-4711");
}

TEST_F(InBatchScript, ShellOfSalloc_IsTheSame) {
  environment["SLURM_STEP_ID"] = "4294967290";
  environment["SLURM_STEP_NODELIST"] = "n08";
  environment["SLURM_STEP_NUM_NODES"] = environment["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_THAT(read(), SizeIs(1));
  EXPECT_EQ(at("job_id"), "slurm-4711");
}

TEST_F(InBatchScript, Torchrun_SaysItToo) {
  tree.set("compat", "torchrun", "--compat");
  add_torchrun_defaults(&tree);
  EXPECT_THAT(read(), SizeIs(1));
}

TEST_F(InBatchScript, OneNodeThatIsMeant_NeedsNoWarning) {
  tree.set("nnodes", "1", "--nnodes");
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_EQ(at("via"), "-");
  tree = ConfigTree();
  environment["SLURM_JOB_NUM_NODES"] = "1";
  environment["SLURM_JOB_NODELIST"] = "n08";
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_EQ(at("log_dir"), "log/slurm-4711");
}

TEST_F(InBatchScript, HeterogeneousJob_SaysSo) {
  environment["SLURM_HET_SIZE"] = "2";
  environment["SLURM_JOB_NUM_NODES"] = "1";  // of its first component
  EXPECT_THAT(read(), ElementsAre(HasSubstr("--het-group")));
}

TEST_F(InBatchScript, SeveralNodesWithoutAddresses_GoThroughSlurm) {
  for (const char* count : {"2", "1:2"}) {
    tree = ConfigTree();
    tree.set("nnodes", count, "--nnodes");
    EXPECT_THAT(read(), IsEmpty());
    EXPECT_EQ(at("via"), "slurm") << count;
    EXPECT_EQ(at("job_id"), "-") << count;  // the step's
    EXPECT_EQ(at("log_dir"), "-") << count;
  }
  tree.set("master", "n08", "--master");
  tree.remove("via");
  read();
  EXPECT_EQ(at("via"), "-");
}

TEST_F(InBatchScript, Via_DecidesItself) {
  tree.set("via", "ssh", "--via");
  EXPECT_THAT(read(), IsEmpty());
  EXPECT_EQ(at("job_id"), "-");
  EXPECT_EQ(at("log_dir"), "-");
}

}  // namespace
}  // namespace fleet
