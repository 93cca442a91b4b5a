// One rank or several, on one host or across two: the same training.
#include <gtest/gtest.h>

#include "base/cpu.h"
#include "tests/training/training_job.h"

namespace fleet {
namespace {

std::vector<std::string> twenty_steps(int batch, const std::string& output) {
  return {"data.batch_size=" + std::to_string(batch), "train.max_steps=20",
          "train.output=" + output};
}

// Without AVX-512, kernels for batches of different sizes round differently: 6.2e-4 was measured.
double rounding() { return FLEET_X86_HAS("avx512f") ? 1e-5 : 2e-3; }

TEST(RanksAgree, OneTwoFourRanksAndTwoHosts_AfterTwentySteps) {
  TrainingJob job;
  const auto run = [&](int ranks) {
    const std::string name = "r" + std::to_string(ranks);
    auto fleetrun = job.start(name, {"--nproc_per_node=" + std::to_string(ranks)},
                              twenty_steps(64 / ranks, name));
    EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
    return job.weights(name);
  };
  const TensorFile one = run(1);
  EXPECT_LE(distance(one, run(2)), rounding());
  EXPECT_LE(distance(one, run(4)), rounding());
  ASSERT_EQ(job.run_on_two_nodes("gloo", 1, twenty_steps(32, "gloo")), 0);
  EXPECT_LE(distance(one, job.weights("gloo")), rounding());
  ASSERT_EQ(job.run_on_two_nodes("both", 2, twenty_steps(16, "both")), 0);
  EXPECT_LE(distance(one, job.weights("both")), rounding());
}

std::vector<std::string> with(std::vector<std::string> overrides,
                              const std::vector<std::string>& more) {
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

// However the sums of gradients travel, they are the same sums.
TEST(RanksAgree, SeveralCommunicatorsAndGroups_AreTheSameTraining) {
  TrainingJob job;
  const std::vector<std::string> three = {"strategy.fuse_grad_size_in_num=1",
                                          "strategy.nccl_comm_num=3"};
  const auto run = [&](const std::string& name, const std::vector<std::string>& strategy) {
    auto fleetrun = job.start(name, {"--nproc_per_node=2"}, with(twenty_steps(32, name), strategy));
    EXPECT_EQ(fleetrun->wait(), 0) << fleetrun->output();
    return job.weights(name);
  };
  const TensorFile one = run("one", {});
  EXPECT_LE(distance(one, run("ordered", three)), rounding());
  EXPECT_LE(distance(one, run("free", with(three, {"strategy.sync_nccl_allreduce=false"}))),
            rounding());
  const std::vector<std::string> groups = {"strategy.use_hierarchical_allreduce=true",
                                           "strategy.hierarchical_allreduce_inter_nranks=2",
                                           "strategy.nccl_comm_num=2"};
  ASSERT_EQ(job.run_on_two_nodes("groups", 2, with(twenty_steps(16, "groups"), groups)), 0);
  EXPECT_LE(distance(one, job.weights("groups")), rounding());
}

}  // namespace
}  // namespace fleet
