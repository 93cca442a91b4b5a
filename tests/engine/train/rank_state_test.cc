#include "train/rank_state.h"

#include <gmock/gmock.h>

#include "tensor/host.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;

struct Net {
  Program program;
  SectionId forward, sync;
  VarId weight, mean, residual, drift, syncs, steps;
  Net() {
    forward = program.add_section("forward", {});
    sync = program.add_section("sync", {.training = false, .sync = true});
    weight = program.parameter("fc.weight", {2}, {});
    mean = program.state("bn.running_mean", {2}, {});
    residual = program.state("fc.weight.residual", {2}, {});
    drift = program.state("bn.drift", {2}, {});
    syncs = program.state("optimizer.syncs", {1}, {});
    steps = program.state("optimizer.steps", {1}, {});
    program.var(residual).per_rank = program.var(drift).per_rank = true;
    program.append(forward, "scale", {mean}, {mean});
    program.append(forward, "scale", {drift}, {drift});
    program.append(forward, "scale", {steps}, {steps}, {{"bias", 1.0}});
    program.append(sync, "scale", {syncs}, {syncs}, {{"bias", 1.0}});
  }
};

TEST(RankState, StatesOfEachRank_AreNotAmongWhatRank0Gives) {
  const Net net;
  EXPECT_THAT(rank_states(net.program), ElementsAre(net.residual, net.drift));
  EXPECT_THAT(shared_vars(net.program), ElementsAre(net.weight, net.mean, net.syncs, net.steps));
  EXPECT_THAT(shared_statistics(net.program, net.forward), ElementsAre(net.mean, net.steps));
}

TEST(RankState, CopiesInALowType_AreGivenToNobody) {
  Net net;
  net.program.make_copy(net.weight, DType::kBFloat16);
  EXPECT_THAT(shared_vars(net.program), ElementsAre(net.weight, net.mean, net.syncs, net.steps));
}

TEST(RankSync, Run_OnceAfterWhatWasTrained) {
  const Net net;
  HostDevice device;
  Executor executor(plan_program(net.program, {}), device, nullptr);
  executor.initialize(1);
  RankSync sync(executor, 5);
  const auto syncs_after = [&](int64_t steps) {
    sync.run(steps);
    EXPECT_EQ(executor.values<float>(net.steps)[0], 0) << "a sync is no step";
    return executor.values<float>(net.syncs)[0];
  };
  EXPECT_EQ(syncs_after(5), 0);  // nothing was trained since the checkpoint
  EXPECT_EQ(syncs_after(6), 1);
  EXPECT_EQ(syncs_after(6), 1);  // saving, then evaluation
  EXPECT_EQ(syncs_after(8), 2);
}

TEST(RankSync, ProgramWithoutSyncSections_RunsNothing) {
  Program program;
  const VarId refreshed = program.state("refreshed", {1}, {});
  const SectionId section = program.add_section("refresh", {.training = false, .refresh = true});
  program.append(section, "scale", {refreshed}, {refreshed}, {{"bias", 1.0}});
  HostDevice device;
  Executor executor(plan_program(program, {}), device, nullptr);
  executor.initialize(1);
  RankSync(executor, 0).run(3);  // any run would refresh first
  EXPECT_EQ(executor.values<float>(refreshed)[0], 0);
}

}  // namespace
}  // namespace fleet
