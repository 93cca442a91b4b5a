// The launcher's reactions to its ranks and the job.
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Property;
using namespace std::chrono_literals;

TEST_F(SupervisionTest, AllRanksEndWell_EndsWithZeroOnceEverybodyHas) {
  run();
  supervision.on_rank_ended(ended(0, 0, 0, ""), start + 1s);
  supervision.on_rank_ended(ended(1, 0, 0, ""), start + 1s);
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(0));
  supervision.on_verdict(verdict_of(Verdict::SUCCESS));
}

// This node of the job above with its first rank as a parameter server.
Assignment assignment_with_servers(int servers) {
  Assignment assignment = sample_assignment();
  auto world = std::make_shared<World>(*assignment.world);
  world->mutable_nodes(1)->set_servers(servers);
  number_ranks(world.get());
  assignment.world = world;
  return assignment;
}

TEST_F(SupervisionTest, TrainersEndWell_ServersAreStoppedAfterTheVerdict) {
  run(assignment_with_servers(1));
  EXPECT_CALL(effects, finish_node());
  supervision.on_rank_ended(ended(1, 0, 0, ""), start);
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(verdict_of(Verdict::SUCCESS));
  EXPECT_CALL(effects,
              report(AllOf(Property(&RankExit::killed_by_us, true),
                           Property(&RankExit::server, true), Property(&RankExit::rank, 0))));
  supervision.on_rank_ended(ended(0, 0, SIGTERM, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(0));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, ServersOnly_HaveFinishedWhenTheOthersHave) {
  EXPECT_CALL(effects, finish_node());
  run(assignment_with_servers(2));
}

TEST_F(SupervisionTest, ServerFails_EndsTheJob) {
  run(assignment_with_servers(1));
  EXPECT_CALL(effects,
              report(AllOf(Property(&RankExit::server, true), Property(&RankExit::code, 3))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 3, 0, ""), start);
}

TEST_F(SupervisionTest, WhatTheKernelKnows_IsReported) {
  run();
  RankExit killed = ended(0, 0, SIGKILL, "");
  killed.set_note("the kernel killed it: out of memory");
  killed.set_oom(true);
  EXPECT_CALL(effects, report(AllOf(Property(&RankExit::oom, true),
                                    Property(&RankExit::note, HasSubstr("out of memory")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(killed, start);
  // A rank that the launcher killed itself needs no explanation.
  EXPECT_CALL(effects,
              report(AllOf(Property(&RankExit::oom, false), Property(&RankExit::note, ""))));
  killed.set_local_rank(1);
  killed.set_killed_by_us(true);
  supervision.on_rank_ended(killed, start);
}

TEST_F(SupervisionTest, Verdict_IsKept) {
  run();
  EXPECT_CALL(effects, record_verdict(Property(&Verdict::kind, Verdict::NODE_LOST)));
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(verdict_of(Verdict::NODE_LOST));
}

TEST_F(SupervisionTest, RankStalls_IsReportedAndInspected) {
  run();
  EXPECT_CALL(effects,
              report_stall(AllOf(Property(&RankStall::rank, 3), Property(&RankStall::local_rank, 1),
                                 Property(&RankStall::quiet_for_ms, 5000),
                                 Property(&RankStall::log_path, "log/workerlog.1"))));
  supervision.on_rank_stalled(stalled(1));
  EXPECT_CALL(effects, warn(_));
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_command(stack_command(1, true));
  EXPECT_CALL(effects, send_stacks(Property(
                           &Stacks::clusters,
                           ::testing::ElementsAre(AllOf(
                               Property(&StackCluster::frames, ::testing::ElementsAre("wait")),
                               Property(&StackCluster::ranks,
                                        ::testing::ElementsAre(Property(&RankStack::rank, 2),
                                                               Property(&RankStack::rank, 3))))))));
  Stacks stacks;
  stacks.add_clusters()->add_frames("wait");
  stacks.mutable_clusters(0)->add_ranks()->set_state('S');
  stacks.mutable_clusters(0)->add_ranks()->set_local_rank(1);
  supervision.on_stacks(stacks);
}

// PyTorch ranks may have issued many calls in many groups.
TEST_F(SupervisionTest, MoreCallsThanAMessageHolds_AreSentWithoutTheirDescriptions) {
  run();
  Stacks stacks, sent;
  for (int local_rank = 0; local_rank < 2; ++local_rank) {
    RankCollectives& rank = *stacks.add_collectives();
    rank.set_local_rank(local_rank);
    rank.add_groups()->set_entered(812);
    rank.mutable_groups(0)->add_calls()->set_purpose(std::string(5 << 20, 'x'));
  }
  EXPECT_CALL(effects, send_stacks(_)).WillOnce(::testing::SaveArg<0>(&sent));
  supervision.on_stacks(stacks);
  ASSERT_EQ(sent.collectives_size(), 2);
  EXPECT_EQ(sent.collectives(1).rank(), 3);
  ASSERT_EQ(sent.collectives(1).groups_size(), 1);
  EXPECT_EQ(sent.collectives(1).groups(0).entered(), 812);
  EXPECT_EQ(sent.collectives(1).groups(0).calls_size(), 0);
}

TEST_F(SupervisionTest, Progress_IsReportedByGlobalRank) {
  EXPECT_CALL(effects, report_steps(_)).Times(0);
  StepReport report;
  report.add_ranks()->set_local_rank(1);
  report.mutable_ranks(0)->set_steps(5);
  supervision.on_progress(report);  // before anything runs
  run();
  EXPECT_CALL(effects, report_steps(Property(
                           &StepReport::ranks,
                           ::testing::ElementsAre(AllOf(
                               Property(&RankSteps::rank, 3), Property(&RankSteps::local_rank, 1),
                               Property(&RankSteps::steps, 5), Property(&RankSteps::step, 4))))));
  report.mutable_ranks(0)->set_step(4);
  supervision.on_progress(report);
}

TEST_F(SupervisionTest, FirstFailureElsewhere_DecidesTheExitCode) {
  run();
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(failed_verdict(0, 0, SIGSEGV));
  EXPECT_CALL(effects, report(Property(&RankExit::killed_by_us, true))).Times(2);
  supervision.on_rank_ended(ended(0, 1, 0, "", true), start);
  supervision.on_rank_ended(ended(1, 1, 0, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(128 + SIGSEGV));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, NotStarted_IsAFailureWithItsReason) {
  run();
  EXPECT_CALL(effects, report(AllOf(Property(&RankExit::code, 127),
                                    Property(&RankExit::note, HasSubstr("cannot execute")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_not_started(0, "cannot execute 'x'", start);
}

TEST_F(SupervisionTest, KilledFromOutside_IsExplained) {
  run();
  EXPECT_CALL(effects, report(Property(&RankExit::note, HasSubstr("out of memory"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 0, SIGKILL, ""), start);
}

TEST_F(SupervisionTest, StacksThatWereAskedFor_AreCollectedWithoutAlarm) {
  run();
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_command(stack_command(0, false));
}

TEST_F(SupervisionTest, RankThatHasEndedWell_IsReportedWithTheStacks) {
  run();
  supervision.on_rank_ended(ended(1, 0, 0, "error: bad label"), start);
  Stacks stacks, sent;
  stacks.add_endings()->set_error("KeyError: 'lr'");  // local rank 0, which runs
  EXPECT_CALL(effects, send_stacks(_)).WillOnce(::testing::SaveArg<0>(&sent));
  supervision.on_stacks(stacks, start + std::chrono::seconds(4));
  ASSERT_EQ(sent.endings_size(), 2);
  EXPECT_EQ(sent.endings(0).rank(), 2);
  EXPECT_FALSE(sent.endings(0).ended());
  EXPECT_EQ(sent.endings(1).rank(), 3);
  EXPECT_TRUE(sent.endings(1).ended());
  EXPECT_EQ(sent.endings(1).ago_ms(), 4000);
  EXPECT_EQ(sent.endings(1).error(), "error: bad label");
  EXPECT_FALSE(sent.endings(1).log_path().empty());
}

// Others need not wait for what this node cannot say.
TEST_F(SupervisionTest, StacksWithoutRanks_AreAnsweredAtOnce) {
  EXPECT_CALL(effects, send_stacks(Property(&Stacks::clusters_size, 0))).Times(2);
  supervision.on_stack_command(stack_command(0, false));
  supervision.on_stacks({});  // of a guardian that was asked before
  run();
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  supervision.on_stack_command(stack_command(0, false));
}

}  // namespace
}  // namespace fleet
