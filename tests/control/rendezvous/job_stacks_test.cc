// Stacks of a job that hangs, and on request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Job = SteadyJob;

TEST(JobState, StacksAreAskedFor_TheAskerGetsThemAndTheJobGoesOn) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.send(2, &wire::NodeMessage::mutable_stack_request);
  ASSERT_EQ(job.events_for<StackCommand>(1).size(), 1u);
  EXPECT_FALSE(job.events_for<StackCommand>(1)[0].hang());
  Stacks stacks;
  stacks.add_clusters()->add_ranks()->set_rank(0);
  job.send(1, &wire::NodeMessage::mutable_stacks, stacks);
  job.heartbeat_all_for(13s, {1, 2});
  ASSERT_EQ(job.events_for<StackReport>(2).size(), 1u);
  EXPECT_EQ(job.events_for<StackReport>(2)[0].stacks().clusters_size(), 1);
  EXPECT_THAT(job.events_for<StackReport>(2)[0].silent(), testing::ElementsAre(1));
  EXPECT_TRUE(job.events_for<StackReport>(1).empty());
  EXPECT_FALSE(job.state.verdict());
  job.send(2, &wire::NodeMessage::mutable_stack_request);  // again
  EXPECT_EQ(job.events_for<StackCommand>(1).size(), 2u);
}

// Debuggers take long on a busy machine.
TEST(JobState, StacksWithALimit_TheNodesLearnItAndTheHostWaitsAsLong) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  wire::StackRequest request;
  request.set_limit_ms(30'000);
  job.send(2, &wire::NodeMessage::mutable_stack_request, request);
  EXPECT_EQ(job.events_for<StackCommand>(1).at(0).limit_ms(), 30'000);
  job.heartbeat_all_for(29s, {1, 2});
  EXPECT_TRUE(job.events_for<StackReport>(2).empty());
  job.heartbeat_all_for(2s, {1, 2});
  EXPECT_EQ(job.events_for<StackReport>(2).size(), 1u);
}

// The report on a large job would not fit a message otherwise.
TEST(JobState, EqualStacksInAReport_AreSentOnce) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.send(2, &wire::NodeMessage::mutable_stack_request);
  Stacks stacks;
  stacks.add_clusters()->add_frames("wait");
  stacks.mutable_clusters(0)->add_ranks();
  for (SessionId session : {1, 2}) job.send(session, &wire::NodeMessage::mutable_stacks, stacks);
  ASSERT_EQ(job.events_for<StackReport>(2).size(), 1u);
  const Stacks sent = job.events_for<StackReport>(2)[0].stacks();
  ASSERT_EQ(sent.clusters_size(), 1);
  EXPECT_EQ(sent.clusters(0).ranks_size(), 2);
}

// The frames of 6,000 ranks at different lines.
TEST(JobState, ReportThatIsTooLarge_LeavesOutStacksAndSaysSo) {
  Job job(job_of({"a"}));
  job.join_all();
  job.send(1, &wire::NodeMessage::mutable_stack_request);
  Stacks stacks;
  for (int rank = 0; rank < 6'000; ++rank) {
    StackCluster& cluster = *stacks.add_clusters();
    cluster.add_ranks()->set_rank(rank);
    for (int i = 0; i < 20; ++i)
      cluster.add_frames("line " + std::to_string(rank) + std::string(50, 'f'));
  }
  job.send(1, &wire::NodeMessage::mutable_stacks, stacks);
  const StackReport report = job.events_for<StackReport>(1).at(0);
  EXPECT_LT(report.ByteSizeLong(), size_t{4} << 20);
  EXPECT_EQ(report.stacks().clusters_size(), 6'000);
  EXPECT_EQ(report.stacks().clusters(0).frames_size(), 20);
  EXPECT_EQ(report.stacks().clusters(5'999).frames_size(), 0);
  EXPECT_EQ(report.notes_size(), 1);
}

// A job of two nodes with two ranks each, in which rank 3 makes no progress.
struct HangingJob : ::testing::Test {
  HangingJob() {
    job.join_all();
    RankStall stall;
    stall.set_rank(3);
    stall.set_local_rank(1);
    stall.set_quiet_for_ms(30'000);
    stall.set_log_path("log/workerlog.1");
    job.send(2, &wire::NodeMessage::mutable_stall, stall);
  }
  // The innermost frames of its two ranks.
  void send(SessionId node, const std::string& first, const std::string& second) {
    Stacks stacks;
    for (int local_rank = 0; local_rank < 2; ++local_rank) {
      StackCluster* cluster = stacks.add_clusters();
      RankStack* stack = cluster->add_ranks();
      stack->set_rank((node == 1 ? 0 : 2) + local_rank);
      stack->set_local_rank(local_rank);
      stack->set_state('S');
      cluster->add_frames(local_rank == 0 ? first : second);
    }
    job.send(node, &wire::NodeMessage::mutable_stacks, stacks);
  }
  Job job{job_of({"a", "b"})};
};

TEST_F(HangingJob, EveryNodeIsAsked_TheOddOneIsNamed) {
  EXPECT_EQ(job.events_for<StackCommand>(1).size(), 1u);
  EXPECT_EQ(job.events_for<StackCommand>(2).size(), 1u);
  send(1, "wait", "read");
  EXPECT_FALSE(job.state.verdict());
  send(2, "wait", "wait");
  for (const SessionId node : {1, 2}) {
    const Verdict verdict = job.verdict(node);
    EXPECT_EQ(verdict.kind(), Verdict::HANG);
    EXPECT_EQ(exit_code_for(verdict), kExitHang);
    EXPECT_EQ(verdict.exit().rank(), 1);
    EXPECT_EQ(verdict.node(), "a");
    EXPECT_THAT(verdict.message(), AllOf(HasSubstr("rank 3 on node 1"), HasSubstr("#0 read")));
  }
}

// Rank 1 has not entered what ranks 2 and 3 wait in; rank 0 runs another program.
TEST_F(HangingJob, RankThatOthersWaitFor_IsNamedWithTheCollective) {
  const auto calls = [](int rank, int local_rank, int entered) {
    RankCollectives all;
    all.set_rank(rank);
    all.set_local_rank(local_rank);
    GroupCalls& group = *all.add_groups();
    group.set_name("dp");
    for (const int number : {1, 1, 3}) group.add_ranks(number);
    group.set_entered(entered);
    group.set_done(11);
    group.set_waiting_ms(entered > 11 ? 30'000 : 0);
    return all;
  };
  Stacks first, second;
  *first.add_collectives() = calls(1, 1, 11);
  *second.add_collectives() = calls(2, 0, 12);
  *second.add_collectives() = calls(3, 1, 12);
  job.send(1, &wire::NodeMessage::mutable_stacks, first);
  job.send(2, &wire::NodeMessage::mutable_stacks, second);
  const Verdict verdict = job.verdict(2);
  EXPECT_THAT(verdict.message(),
              AllOf(HasSubstr("rank 1 has not entered call #12"),
                    ::testing::AllOf(HasSubstr("look at rank 1"), HasSubstr("the others wait"))));
  EXPECT_EQ(verdict.exit().rank(), 1);
  EXPECT_EQ(verdict.exit().log_path(), "");
  ASSERT_EQ(verdict.waits_size(), 1);
  EXPECT_THAT(verdict.waits(0).waiting(), testing::ElementsAre(2, 3));
}

// Rank 1 waits in an exit hook after an exception.
TEST_F(HangingJob, RankThatHasPrintedAnException_IsNamedWithIt) {
  Stacks first;
  RankEnding& ending = *first.add_endings();
  ending.set_rank(1);
  ending.set_local_rank(1);
  ending.set_log_path("log/workerlog.1");
  ending.set_error("KeyError: 'lr'");
  job.send(1, &wire::NodeMessage::mutable_stacks, first);
  send(2, "wait", "wait");
  const Verdict verdict = job.verdict(2);
  EXPECT_THAT(verdict.message(), AllOf(HasSubstr("KeyError: 'lr'"), HasSubstr("look at rank 1")));
  EXPECT_EQ(verdict.exit().rank(), 1);
  EXPECT_EQ(verdict.exit().log_path(), "log/workerlog.1");
  ASSERT_EQ(verdict.endings_size(), 1);
  EXPECT_EQ(verdict.endings(0).node_rank(), 0);
}

TEST_F(HangingJob, RankThatHasEndedBeforeTheOthers_IsNamed) {
  Stacks first;
  RankEnding& ending = *first.add_endings();
  ending.set_rank(1);
  ending.set_ended(true);
  ending.set_ago_ms(31'000);
  job.send(1, &wire::NodeMessage::mutable_stacks, first);
  send(2, "wait", "wait");
  EXPECT_EQ(job.verdict(1).exit().rank(), 1);
  EXPECT_THAT(job.verdict(1).message(), HasSubstr("rank 1 has ended with 0, 31 s before"));
}

TEST(JobState, StacksOnRequest_SayWhoIsWaitedForAndLeaveOutTheCalls) {
  Job job(job_of({"a"}));
  job.join_all();
  job.send(1, &wire::NodeMessage::mutable_stack_request);
  Stacks stacks;
  for (int rank = 0; rank < 2; ++rank) {
    RankCollectives& all = *stacks.add_collectives();
    all.set_rank(rank);
    GroupCalls& group = *all.add_groups();
    for (const int number : {0, 1, 2}) group.add_ranks(number);
    group.set_entered(rank);
    group.set_done(0);
    group.set_waiting_ms(9'000);
  }
  job.send(1, &wire::NodeMessage::mutable_stacks, stacks);
  ASSERT_EQ(job.events_for<StackReport>(1).size(), 1u);
  const StackReport report = job.events_for<StackReport>(1)[0];
  ASSERT_EQ(report.waits_size(), 1);
  EXPECT_THAT(report.waits(0).missing(), testing::ElementsAre(0));
  EXPECT_EQ(report.stacks().collectives_size(), 0);
}

TEST_F(HangingJob, StoppedMeanwhile_LaterLooksAreNew) {
  job.stop(1, SIGTERM);
  send(1, "wait", "wait");
  send(2, "wait", "wait");
  EXPECT_FALSE(job.state.verdict());
  job.send(1, &wire::NodeMessage::mutable_stack_request);
  EXPECT_EQ(job.events_for<StackCommand>(2).size(), 2u);
  EXPECT_TRUE(job.events_for<StackReport>(1).empty());
}

TEST_F(HangingJob, NobodyStandsOut_TheFirstNoticedIsNamed) {
  send(1, "wait", "wait");
  send(2, "wait", "wait");
  EXPECT_EQ(job.verdict(1).exit().rank(), 3);
  EXPECT_EQ(job.verdict(1).exit().log_path(), "log/workerlog.1");
}

TEST_F(HangingJob, NodeThatSendsNothing_IsNotWaitedForLong) {
  send(2, "wait", "wait");
  job.heartbeat_all_for(13s, {1, 2});
  EXPECT_EQ(job.verdict(1).kind(), Verdict::HANG);
  EXPECT_THAT(job.verdict(1).message(), HasSubstr("node 0 sent no stacks"));
}

TEST_F(HangingJob, RankFailsMeanwhile_IsTheVerdict) {
  RankExit exit;
  exit.set_rank(0);
  exit.set_code(7);
  job.send(1, &wire::NodeMessage::mutable_exit, exit);
  send(1, "wait", "wait");
  send(2, "wait", "wait");
  EXPECT_EQ(job.verdict(1).kind(), Verdict::RANK_FAILED);
}

}  // namespace
}  // namespace fleet
