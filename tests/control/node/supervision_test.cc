// What a launcher does about its ranks and the job.
#include <signal.h>

#include "tests/control/node/supervised.h"

namespace fleet {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST_F(SupervisionTest, AllRanksEndWell_EndsWithZeroOnceEverybodyHas) {
  run();
  supervision.on_rank_ended(ended(0, 0, 0, ""), start + 1s);
  supervision.on_rank_ended(ended(1, 0, 0, ""), start + 1s);
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  EXPECT_CALL(effects, end(0));
  supervision.on_verdict(verdict_of(VerdictKind::kSuccess));
}

// This node of the job above with its first rank as a parameter server.
Assignment assignment_with_servers(int servers) {
  Assignment assignment = sample_assignment();
  auto world = std::make_shared<World>(*assignment.world);
  world->servers = world->nodes[1].servers = servers;
  world->world_size -= servers;
  assignment.world = world;
  return assignment;
}

TEST_F(SupervisionTest, TrainersEndWell_ServersAreStoppedAfterTheVerdict) {
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(1), logs, start));
  EXPECT_CALL(effects, finish_node());
  supervision.on_rank_ended(ended(1, 0, 0, ""), start);
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(verdict_of(VerdictKind::kSuccess));
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::killed_by_us, true),
                                    Field(&RankExit::server, true), Field(&RankExit::rank, 0))));
  supervision.on_rank_ended(ended(0, 0, SIGTERM, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(0));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, ServersOnly_HaveFinishedWhenTheOthersHave) {
  EXPECT_CALL(effects, finish_node());
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(2), logs, start));
}

TEST_F(SupervisionTest, ServerFails_EndsTheJob) {
  ASSERT_TRUE(supervision.on_assignment(assignment_with_servers(1), logs, start));
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::server, true), Field(&RankExit::code, 3))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 3, 0, ""), start);
}

TEST_F(SupervisionTest, WhatTheKernelKnows_IsReported) {
  run();
  RankExit killed = ended(0, 0, SIGKILL, "");
  killed.note = "the kernel killed it: out of memory";
  killed.oom = true;
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::oom, true),
                                    Field(&RankExit::note, HasSubstr("out of memory")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(killed, start);
  // What we have killed ourselves needs no explanation.
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::oom, false), Field(&RankExit::note, ""))));
  killed.local_rank = 1;
  killed.killed_by_us = true;
  supervision.on_rank_ended(killed, start);
}

TEST_F(SupervisionTest, Verdict_IsKept) {
  run();
  EXPECT_CALL(effects, record_verdict(Field(&Verdict::kind, VerdictKind::kNodeLost)));
  EXPECT_CALL(effects, print_verdict(_));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(verdict_of(VerdictKind::kNodeLost));
}

TEST_F(SupervisionTest, RankStalls_IsReportedAndLookedAt) {
  run();
  EXPECT_CALL(effects,
              report_stall(AllOf(Field(&RankStall::rank, 3), Field(&RankStall::local_rank, 1),
                                 Field(&RankStall::quiet_for, 5000ms),
                                 Field(&RankStall::log_path, "log/workerlog.1"))));
  supervision.on_rank_stalled({.local_rank = 1, .quiet_for = 5000ms});
  EXPECT_CALL(effects, warn(HasSubstr("hangs")));
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_command({1});
  EXPECT_CALL(effects, send_stacks(::testing::ElementsAre(
                           AllOf(Field(&RankStack::rank, 2), Field(&RankStack::state, 'S'),
                                 Field(&RankStack::frames, ::testing::ElementsAre("wait"))),
                           AllOf(Field(&RankStack::rank, 3), Field(&RankStack::state, 'T')))));
  supervision.on_stacks(
      {{.local_rank = 0, .state = 'S', .frames = {"wait"}}, {.local_rank = 1, .state = 'T'}});
}

TEST_F(SupervisionTest, Progress_IsReportedByGlobalRank) {
  EXPECT_CALL(effects, report_steps(_)).Times(0);
  supervision.on_progress({{.local_rank = 1, .steps = 5}});  // before anything runs
  run();
  EXPECT_CALL(effects, report_steps(::testing::ElementsAre(
                           AllOf(Field(&RankSteps::rank, 3), Field(&RankSteps::local_rank, 1),
                                 Field(&RankSteps::steps, 5), Field(&RankSteps::step, 4)))));
  supervision.on_progress({{.local_rank = 1, .steps = 5, .step = 4}});
}

TEST_F(SupervisionTest, FirstFailureElsewhere_DecidesTheExitCode) {
  run();
  EXPECT_CALL(effects, print_verdict(HasSubstr("rank=[0]")));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_verdict(failed_verdict(0, 0, SIGSEGV));
  EXPECT_CALL(effects, report(Field(&RankExit::killed_by_us, true))).Times(2);
  supervision.on_rank_ended(ended(0, 1, 0, "", true), start);
  supervision.on_rank_ended(ended(1, 1, 0, "", true), start);
  EXPECT_CALL(effects, finish_node());
  EXPECT_CALL(effects, end(128 + SIGSEGV));
  supervision.on_all_gone("");
}

TEST_F(SupervisionTest, NotStarted_IsAFailureWithItsReason) {
  run();
  EXPECT_CALL(effects, report(AllOf(Field(&RankExit::code, 127),
                                    Field(&RankExit::note, HasSubstr("cannot execute")))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_not_started(0, "cannot execute 'x'", start);
}

TEST_F(SupervisionTest, KilledFromOutside_IsExplained) {
  run();
  EXPECT_CALL(effects, report(Field(&RankExit::note, HasSubstr("out of memory"))));
  EXPECT_CALL(effects, stop_ranks(SIGTERM, _));
  supervision.on_rank_ended(ended(0, 0, SIGKILL, ""), start);
}

TEST_F(SupervisionTest, StacksThatWereAskedFor_AreCollectedWithoutAlarm) {
  run();
  EXPECT_CALL(effects, collect_stacks());
  supervision.on_stack_command({0, false});
}

// Others need not wait for what this node cannot say.
TEST_F(SupervisionTest, StacksWithoutRanks_AreAnsweredAtOnce) {
  EXPECT_CALL(effects, send_stacks(::testing::IsEmpty())).Times(2);
  supervision.on_stack_command({0, false});
  supervision.on_stacks({});  // of a guardian that was asked before
  run();
  EXPECT_CALL(effects, finish_node());
  supervision.on_all_gone("");
  supervision.on_stack_command({0, false});
}

}  // namespace
}  // namespace fleet
