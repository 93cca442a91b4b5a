#include "launch/via_slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class ViaSlurm : public ::testing::Test {
 protected:
  std::vector<std::string> command() {
    LaunchRequest request;
    request.settings = tree.validate(launch_schema());
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
  std::string refusal() {
    try {
      command();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "accepted";
  }

  ConfigTree tree;
  std::map<std::string, std::string> environment = {
      {"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_JOB_NUM_NODES", "2"}};
};

TEST_F(ViaSlurm, Command_IsOneTaskANode) {
  tree.set("via", "slurm", "--via");
  tree.set("nproc_per_node", "4", "environment PADDLE_NPROC_PER_NODE");
  EXPECT_THAT(command(),
              ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1",
                          "--cpu-bind=none", "--mpi=none", "/opt/fleetrun", "--nproc_per_node=4",
                          "--local_ranks_filter=0", "--leash", "--", "train.py", "--ips=not mine"));
}

TEST_F(ViaSlurm, MoreOptions_AreSruns) {
  tree.set("via_options", "--overlap  --gpus-per-node=8", "--via_options");
  tree.set("remote_fleetrun", "/elsewhere/fleetrun", "--remote_fleetrun");
  EXPECT_THAT(command(), IsSupersetOf({"--overlap", "--gpus-per-node=8", "/elsewhere/fleetrun"}));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("via_options"))));
}

TEST_F(ViaSlurm, FewerNodes_AreAskedFor) {
  tree.set("nnodes", "1", "--nnodes");
  EXPECT_THAT(command(), IsSupersetOf({"--nodes=1", "--ntasks=1"}));
  EXPECT_THAT(command(), Not(::testing::Contains(HasSubstr("local_ranks_filter"))));
}

TEST_F(ViaSlurm, OutsideOfAnAllocation_IsRefused) {
  environment.erase("SLURM_JOB_NODELIST");
  EXPECT_THAT(refusal(), HasSubstr("salloc or sbatch"));
}

TEST_F(ViaSlurm, InsideOfAStep_IsRefused) {
  environment["SLURM_STEP_ID"] = "3";
  EXPECT_THAT(refusal(), HasSubstr("step 3"));
  environment["SLURM_STEP_ID"] = "4294967290";  // salloc's interactive step
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(ViaSlurm, NodesOfOnesOwn_AreRefused) {
  tree.set("ips", "a,b", "--ips");
  EXPECT_THAT(refusal(), HasSubstr("those of the allocation"));
}

}  // namespace
}  // namespace fleet
