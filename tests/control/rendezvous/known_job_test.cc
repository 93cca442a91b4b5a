#include "rendezvous/known_job.h"

#include <gtest/gtest.h>

#include <memory>

namespace fleet {
namespace {

using namespace std::chrono_literals;

// A world of this generation with two nodes, of which the second can host.
std::shared_ptr<World> world_of(int generation) {
  auto world = std::make_shared<World>();
  world->mutable_id()->set_generation(generation);
  world->mutable_base()->set_generation(generation - 1);
  for (const char* address : {"10.0.0.1", "10.0.0.2"}) world->add_nodes()->set_address(address);
  world->mutable_nodes(1)->set_rdzv_port(6769);
  return world;
}

bool assign(KnownJob* job, int generation, int node_rank) {
  return job->on_assignment({world_of(generation), node_rank, "10.0.0.1:6768"}, generation);
}

RestartCommand restart_of(int generation) {
  RestartCommand command;
  command.set_generation(generation);
  command.mutable_end()->set_generation(generation);
  return command;
}

TEST(KnownJob, FirstWorld_CountsAtOnce) {
  KnownJob job;
  EXPECT_FALSE(assign(&job, 1, 1));
  ASSERT_NE(job.begin(1, {}), nullptr);
  EXPECT_EQ(job.begin(1, {}), nullptr);
  wire::Join join;
  job.on_host_lost(&join);
  EXPECT_EQ(join.last().generation(), 1);
  EXPECT_EQ(join.committed(), join.last());
  EXPECT_TRUE(job.may_host());
}

TEST(KnownJob, WorldThatHasNotBegun_CountsOnlyIfTheOneBeforeIsKnown) {
  KnownJob newcomer, old;
  EXPECT_FALSE(assign(&old, 1, 1));
  old.begin(1, {});
  for (KnownJob* job : {&newcomer, &old}) {
    EXPECT_TRUE(assign(job, 2, 1));
    wire::Join join;
    job->on_host_lost(&join);
    EXPECT_EQ(join.last().generation(), 2);
    EXPECT_EQ(join.committed().generation(), job == &old ? 1 : 0);
    EXPECT_EQ(job->may_host(), job == &old);
    EXPECT_EQ(job->begin(2, {}), nullptr);  // its host is lost
  }
  EXPECT_EQ(old.failover_state(0, "", {}).before->id().generation(), 1);
}

TEST(KnownJob, RestartOfAWorld_ShowsThatItCounts) {
  KnownJob job;
  assign(&job, 2, 1);
  job.on_restart(restart_of(2));
  EXPECT_TRUE(job.may_host());
}

TEST(KnownJob, Spare_HasNoVote) {
  KnownJob job;
  EXPECT_FALSE(job.is_spare());
  assign(&job, 1, 1);
  job.begin(1, {});
  EXPECT_FALSE(assign(&job, 2, -1));
  EXPECT_TRUE(job.is_spare());
  wire::Join join;
  job.on_host_lost(&join);
  EXPECT_FALSE(join.has_last());
  EXPECT_FALSE(job.may_host());
}

// A new host repeats the command.
TEST(KnownJob, EndsOfGenerations_AreKeptOnceEach) {
  KnownJob job;
  assign(&job, 1, 1);
  job.begin(1, {});
  for (int i = 0; i < 2; ++i) job.on_restart(restart_of(1));
  assign(&job, 2, 1);
  job.begin(2, {});
  EXPECT_EQ(job.failover_state(0, "", {}).history.size(), 1u);
}

TEST(KnownJob, FailoverState_HasTheTimeAndTheStepOfTheGeneration) {
  KnownJob job;
  assign(&job, 1, 1);
  job.begin(1, KnownJob::Time(1s));
  StepReport report;
  for (const int step : {7, 5}) report.add_ranks()->set_step(step);
  job.on_steps(report);
  const FailoverState state = job.failover_state(0, "it was lost", KnownJob::Time(61s));
  EXPECT_EQ(state.ran_for, 60s);
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.how, "it was lost");
}

TEST(KnownJob, Hosts_AreAskedWhereTheyWereAndWhereTheyWouldBe) {
  KnownJob job;
  assign(&job, 1, 1);
  EXPECT_EQ(job.host_address(0), "10.0.0.1:6768");
  EXPECT_EQ(job.host_address(1), "10.0.0.2:6769");
}

}  // namespace
}  // namespace fleet
