// Events that end a job, and the node and rank that the verdict names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {
namespace {

using ::testing::AllOf;

using namespace std::chrono_literals;
using testing::HasSubstr;
using Job = SteadyJob;

TEST(JobState, FirstFailure_IsTheVerdictOfAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(2, 3, 7);
  job.settle();
  job.fails(1, 0, 1);  // a cascade, later
  for (SessionId session : {1, 2}) {
    const Verdict verdict = job.verdict(session);
    EXPECT_EQ(verdict.kind(), Verdict::RANK_FAILED);
    EXPECT_EQ(verdict.exit().rank(), 3);
    EXPECT_EQ(verdict.node_rank(), 1);
    EXPECT_EQ(verdict.message(),
              "rank 3 (local rank 1) on node 1 (b, host host-b) exited with code 7 after 1.5 s");
    EXPECT_EQ(exit_code_for(verdict), 7);
  }
}

TEST(JobState, WhatAllHear_IsOneObject) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.fails(2, 3, 7);
  job.settle();
  EXPECT_TRUE(job.shares_last_with(1, 3));
}

TEST(JobState, KilledByUs_IsNeverTheCause) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, 143, true);
  EXPECT_FALSE(job.state.verdict());
  job.fails(2, 2, 9);
  job.settle();
  EXPECT_EQ(job.verdict(1).exit().rank(), 2);
}

TEST(JobState, RankThatLostAPeer_IsTheCauseOnlyWhereNoneOtherComes) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, kExitPeerLost);
  EXPECT_FALSE(job.state.verdict());
  EXPECT_EQ(job.state.next_deadline(), job.now + 500ms);
  job.fails(2, 3, 9);
  job.settle();
  EXPECT_EQ(job.verdict(1).exit().rank(), 3);

  Job alone(job_of({"a", "b"}));
  alone.join_all();
  alone.fails(2, 2, kExitPeerLost);
  alone.fails(1, 0, kExitPeerLost);
  alone.after(499ms);
  EXPECT_FALSE(alone.state.verdict());
  alone.after(1ms);
  EXPECT_EQ(alone.verdict(1).exit().rank(), 2);  // the first of them

  Job over(job_of({"a"}));
  over.join_all();
  over.fails(1, 0, kExitPeerLost);
  over.finish(1);  // nobody is left to wait for
  EXPECT_EQ(over.verdict(1).exit().code(), kExitPeerLost);
}

TEST(JobState, FailureWhileAnotherNodeIsOverdue_WaitsUntilThatIsHeardOrLost) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.heartbeat_all_for(2s, {1, 2});  // c is silent
  job.fails(1, 0, 1);
  job.heartbeat_all_for(500ms, {1, 2});
  EXPECT_FALSE(job.state.verdict());
  job.heartbeat_all_for(1s, {1, 2});
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
  EXPECT_EQ(job.verdict(1).node(), "c");

  Job heard(job_of({"a", "b", "c"}));
  heard.join_all();
  heard.heartbeat_all_for(2s, {1, 2});
  heard.fails(1, 0, 1);
  heard.heartbeat_all_for(500ms, {1, 2, 3});
  EXPECT_EQ(heard.verdict(1).exit().code(), 1);
}

TEST(JobState, CascadeThatIsHeardFirst_IsNotTheVerdict) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.after(1s);
  const auto exit_at = [&](int rank, int signal, std::chrono::nanoseconds before) {
    RankExit exit;
    exit.set_rank(rank);
    exit.set_code(signal == 0);
    exit.set_signal(signal);
    exit.set_at_ns((job.now.time_since_epoch() - before).count());
    exit.set_at_error_ns(1'000'000);
    return exit;
  };
  job.send(1, &wire::NodeMessage::mutable_exit, exit_at(0, 0, 2ms));
  job.after(100ms);
  job.send(2, &wire::NodeMessage::mutable_exit, exit_at(3, 9, 103ms));
  job.settle();
  EXPECT_EQ(job.verdict(1).exit().rank(), 3);
}

TEST(JobState, RankLostAPeerOfALostNode_NodeIsTheCause) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, kExitPeerLost);
  job.step(SessionLost{2});
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
}

// A batch system signals every node's launcher.
TEST(JobState, UserSignalToEveryLauncher_IsOne) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  for (SessionId session : {1, 2}) job.signal(session, 10);
  EXPECT_EQ(job.events_for<SignalCommand>(1).size(), 1u);
  job.signal(2, 10);  // the same launcher once more: a second one
  job.signal(1, 12);  // another signal
  EXPECT_EQ(job.events_for<SignalCommand>(1).size(), 3u);
  for (int i = 0; i < 4; ++i) job.after(500ms);
  job.signal(1, 10);
  EXPECT_EQ(job.events_for<SignalCommand>(1).size(), 4u);
}

TEST(JobState, UserSignal_IsForAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.signal(2, 10);
  for (SessionId session : {1, 2}) {
    ASSERT_EQ(job.events_for<SignalCommand>(session).size(), 1u);
    EXPECT_EQ(job.events_for<SignalCommand>(session)[0].signal(), 10);
  }
}

TEST(JobState, KilledByUsWithoutAnOrder_IsNoSuccess) {
  Job job(job_of({"a"}));
  job.join_all();
  job.fails(1, 0, 143, true);
  job.finish(1);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::STOPPED);
}

TEST(JobState, AllFinished_Success) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.finish(2);
  job.finish(2);  // said twice counts once
  ASSERT_EQ(job.events_for<PeerEvent>(1).size(), 1u);
  EXPECT_EQ(job.events_for<PeerEvent>(1)[0].node(), "b");
  EXPECT_FALSE(job.state.verdict());
  job.finish(1);
  EXPECT_EQ(job.verdict(2).kind(), Verdict::SUCCESS);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 0);
}

TEST(JobState, FailedNode_IsNotSaidToHaveFinished) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(2, 3, 9);
  job.finish(2);
  EXPECT_TRUE(job.events_for<PeerEvent>(1).empty());
  job.settle();
  EXPECT_EQ(job.verdict(1).exit().rank(), 3);
}

TEST(JobState, StreamLost_NodeLostAtOnce) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.step(SessionLost{2});
  const Verdict verdict = job.verdict(1);
  EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
  EXPECT_THAT(verdict.message(), AllOf(HasSubstr("node 1 (b"), HasSubstr("its fleetrun vanished")));
  EXPECT_EQ(exit_code_for(verdict), kExitNodeLost);
}

TEST(JobState, NodeFailed_IsLostToAllAndHearsItToo) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fail_node(2, "its guardian was killed");
  for (SessionId session : {1, 2}) {
    const Verdict verdict = job.verdict(session);
    EXPECT_EQ(verdict.kind(), Verdict::NODE_LOST);
    EXPECT_EQ(verdict.node_rank(), 1);
    EXPECT_THAT(verdict.message(),
                AllOf(HasSubstr("node 1 (b"), HasSubstr("its guardian was killed")));
  }
}

TEST(JobState, NodeFailedWhileStopping_StopStaysTheVerdictOfAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.stop(1, SIGTERM);
  job.fail_node(2, "its guardian was killed");
  job.finish(1);
  EXPECT_FALSE(job.state.verdict());
  job.finish(2);
  for (SessionId session : {1, 2}) EXPECT_EQ(job.verdict(session).kind(), Verdict::STOPPED);
}

TEST(JobState, LeftBeforeFinishing_NodeLost_AfterFinishing_Not) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.finish(2);
  job.send(2, &wire::NodeMessage::mutable_leave);
  EXPECT_FALSE(job.state.verdict());
  job.send(3, &wire::NodeMessage::mutable_leave);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
  EXPECT_THAT(job.verdict(1).message(), HasSubstr("left before its ranks had ended"));
}

TEST(JobState, NodeWithServersLeftAfterFinishing_NodeLost) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  wire::Join serving = node_of(job.spec, "b");
  serving.mutable_node()->set_servers(1);
  job.join(2, serving);
  job.finish(2);
  job.send(2, &wire::NodeMessage::mutable_leave);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
}

TEST(JobState, StopRequest_StopsAllThenVerdictWhenAllFinished) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.stop(2, SIGTERM);
  EXPECT_EQ(job.events_for<StopCommand>(1).at(0).signal(), SIGTERM);
  EXPECT_EQ(job.events_for<StopCommand>(2).at(0).node(), "b");
  job.fails(1, 0, 1);  // what ends after the order ends because of it
  EXPECT_FALSE(job.state.verdict());
  job.finish(1);
  job.stop(2, SIGINT);  // again: passed on, but the first is the verdict
  EXPECT_EQ(job.events_for<StopCommand>(1).at(1).signal(), SIGINT);
  job.finish(2);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::STOPPED);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 128 + SIGTERM);
  EXPECT_THAT(job.verdict(1).message(),
              AllOf(HasSubstr("stopped by SIGTERM"), HasSubstr("node 1 (b)")));
}

TEST(JobState, StopAtAnUnknownTime_FollowsTheFailureBeforeIt) {
  for (const bool known : {false, true}) {
    Job job(job_of({"a", "b"}));
    job.join_all();
    job.fails(1, 0, 7);
    wire::StopRequest request = stop_request(SIGTERM);
    if (known) request.set_at_error_ns(0);  // at 0 ns: the failure follows from it
    job.send(2, &wire::NodeMessage::mutable_stop, request);
    job.settle();
    job.finish(1);
    job.finish(2);
    EXPECT_EQ(job.verdict(1).kind(), known ? Verdict::STOPPED : Verdict::RANK_FAILED);
  }
}

TEST(JobState, NodeLostWhileStopping_StopStaysTheVerdict) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.stop(1, SIGINT);
  job.finish(1);
  job.step(SessionLost{2});
  EXPECT_EQ(job.events_for<PeerEvent>(1).back().kind(), PeerEvent::LOST);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::STOPPED);
}

TEST(JobState, StopRequestWhileForming_EndsTheWaiting) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.stop(1, SIGINT);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::STOPPED);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 130);
}

TEST(JobState, HostEnds_EveryoneHearsNodeZeroIsLost) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.step(HostEnds{});
  EXPECT_EQ(job.verdict(2).kind(), Verdict::NODE_LOST);
  EXPECT_EQ(job.verdict(2).node_rank(), 0);
}

TEST(Describe, Signal_IsNamed) {
  RankExit exit;
  exit.set_rank(5);
  exit.set_local_rank(1);
  exit.set_node_rank(2);
  exit.set_signal(SIGSEGV);
  exit.set_ran_for_ms(61'234);
  exit.set_note("core dumped");
  EXPECT_THAT(describe(exit, "10.0.0.3"), AllOf(HasSubstr("rank 5 (local rank 1)"),
                                                HasSubstr("SIGSEGV after 61.2 s (core dumped)")));
}

}  // namespace
}  // namespace fleet
