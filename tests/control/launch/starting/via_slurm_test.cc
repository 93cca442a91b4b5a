#include "launch/starting/via_slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "launch/planning/options.h"
#include "launch/planning/torchrun/translate.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class ViaSlurm : public ::testing::Test {
 protected:
  std::vector<std::string> command() {
    LaunchRequest request;
    request.settings = tree.validate(launch_schema());
    request.config = read_launch_config(request.settings);
    request.program = {"train.py", "--ips=not mine"};
    return srun_command(
        request,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = environment.find(name);
          if (found == environment.end()) return std::nullopt;
          return found->second;
        },
        "/opt/fleetrun");
  }
  Error refusal() {
    return thrown_by([&] { command(); });
  }

  ConfigTree tree;
  std::map<std::string, std::string> environment = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_JOB_NUM_NODES", "2"}};
};

TEST_F(ViaSlurm, Command_IsOneTaskANode) {
  tree.set("via", "slurm", "--via");
  tree.set("nproc_per_node", "4", "environment PADDLE_NPROC_PER_NODE");
  EXPECT_THAT(
      command(),
      ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpu-bind=none",
                  "--mpi=none", "--kill-on-bad-exit=0", "/opt/fleetrun", "--nproc_per_node=4",
                  "--local_ranks_filter=0", "--control_pipe", "--", "train.py", "--ips=not mine"));
}

TEST_F(ViaSlurm, MoreOptions_AreSruns) {
  tree.set("via_options", "--overlap  --comment='a b' --gpus-per-node=8", "--via_options");
  tree.set("remote_fleetrun", "/elsewhere/fleetrun", "--remote_fleetrun");
  EXPECT_THAT(command(), IsSupersetOf({"--overlap", "--comment=a b", "--gpus-per-node=8",
                                       "/elsewhere/fleetrun"}));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("via_options"))));
}

TEST_F(ViaSlurm, FewerNodes_AreAskedFor) {
  tree.set("nnodes", "1", "--nnodes");
  EXPECT_THAT(command(), IsSupersetOf({"--nodes=1", "--ntasks=1"}));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("local_ranks_filter"))));
}

TEST_F(ViaSlurm, RangeOfNodes_IsPassedOnWithThoseOfTheAllocation) {
  tree.set("nnodes", "1:4", "--nnodes");
  EXPECT_THAT(command(),
              IsSupersetOf({"--nodes=2", "--ntasks=2", "--nnodes=1:4", "--no-kill", "--wait=0"}));
  tree.set("nnodes", "3:4", "--nnodes");
  EXPECT_THAT(refusal(), IsUsageError("--nnodes 3:4"));
}

TEST_F(ViaSlurm, Torchrun_UsesTheNodesOfTheAllocation) {
  tree.set("compat", "torchrun", "--compat");
  add_torchrun_defaults(&tree);
  EXPECT_THAT(command(), IsSupersetOf({"--nodes=2", "--ntasks=2", "--compat=torchrun"}));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("nnodes"))));
  tree.set("nnodes", "1", "--nnodes");
  EXPECT_THAT(command(), IsSupersetOf({"--nodes=1"}));
}

TEST_F(ViaSlurm, Plan_HasTheNodesOfTheAllocation) {
  tree.set("via", "slurm", "--via");
  tree.set("nproc_per_node", "4", "--nproc_per_node");
  LaunchRequest request;
  request.settings = tree.validate(launch_schema());
  request.config = read_launch_config(request.settings);
  request.program = {"train.py"};
  const auto look = [this](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  };
  const ViaPlan plan = plan_via_slurm(request, look, "/opt/fleetrun");
  EXPECT_EQ(plan.command[0], "srun");
  ASSERT_EQ(plan.nodes.size(), 2u);
  EXPECT_EQ(plan.nodes[1].name, "n2");
  EXPECT_EQ(plan.nodes[1].logs, "log/slurm-7.STEP/node1");
  EXPECT_THAT(plan.nodes[1].processes.ranks, ElementsAre(4, 5, 6, 7));
}

TEST_F(ViaSlurm, Tee_ShowsAllRanks) {
  tree.set("tee", "3", "--tee");
  EXPECT_THAT(command(), ::testing::Contains("--tee=3"));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("local_ranks_filter"))));
}

// Flags on the nodes, which refuse what has no effect.
TEST_F(ViaSlurm, EnvironmentOfOtherJobs_IsNotPassedOn) {
  tree.set("fleetd_port", "7000", "environment FLEETD_PORT");
  tree.set("with_gloo", "1", "environment PADDLE_WITH_GLOO");
  tree.set("elastic_timeout", "30", "environment PADDLE_ELASTIC_TIMEOUT");
  tree.set("host", "10.0.0.1", "environment POD_IP");
  tree.set("elastic_level", "-1", "environment PADDLE_ELASTIC_LEVEL");
  for (const char* key : {"fleetd_port", "with_gloo", "elastic_timeout", "host"}) {
    EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr(key)))) << key;
  }
  tree.set("max_restart", "2", "--max_restart");
  EXPECT_THAT(command(), AllOf(::testing::Contains("--max_restart=2"),
                               ::testing::Contains(HasSubstr("--elastic_timeout=30")),
                               Not(::testing::Contains(HasSubstr("elastic_level")))));
}

TEST_F(ViaSlurm, Numbers_ArePassedOnExactly) {
  tree.set("grace", "1e-7", "--grace");
  tree.set("hang_timeout", "0.3", "--hang_timeout");
  EXPECT_THAT(command(), IsSupersetOf({"--grace=1e-07", "--hang_timeout=0.3"}));
}

TEST_F(ViaSlurm, OutsideOfAnAllocation_IsRefused) {
  environment.erase("SLURM_JOB_NODELIST");
  EXPECT_THAT(refusal(), IsUsageError("--via=slurm"));
}

TEST_F(ViaSlurm, InsideOfAStep_IsRefused) {
  environment["SLURM_STEP_ID"] = "3";
  EXPECT_THAT(refusal(), IsUsageError("--via=slurm"));
  environment["SLURM_STEP_ID"] = "4294967290";  // salloc's interactive step
  EXPECT_NO_THROW(command());
}

TEST_F(ViaSlurm, HeterogeneousJob_IsRefused) {
  environment["SLURM_HET_SIZE"] = "2";
  EXPECT_THAT(refusal(), IsUsageError("--via=slurm"));
}

TEST_F(ViaSlurm, NodesOfOnesOwn_AreRefused) {
  tree.set("ips", "a,b", "--ips");
  EXPECT_THAT(refusal(), IsUsageError("--ips"));
}

}  // namespace
}  // namespace fleet
