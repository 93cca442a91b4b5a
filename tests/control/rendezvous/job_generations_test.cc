// A job that is restarted: what JobState does between two generations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/control/rendezvous/restarted_job.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using Job = RestartedJob;
using Phase = JobState::Phase;

TEST(JobGenerations, RankFails_AllStopAndStartAgain) {
  Job job(restartable(job_of({"a", "b"})));
  job.join_all(2);
  job.fail(2);
  for (const SessionId session : {1, 2}) {
    const auto orders = job.events_for<RestartCommand>(session);
    ASSERT_EQ(orders.size(), 1u);
    EXPECT_EQ(orders[0].generation(), 1);
    EXPECT_EQ(orders[0].restart(), 1);
    EXPECT_EQ(orders[0].of(), 3);
    EXPECT_EQ(orders[0].cause().exit().code(), 7);
    EXPECT_EQ(orders[0].cause().node_rank(), 1);
  }
  job.fail(1, 9);  // what ends now ends because of the order
  job.ready(1);
  EXPECT_EQ(job.state.phase(), Phase::kStopping);
  job.ready(2);
  // The next world is sent, and begins when both have accepted it.
  ASSERT_EQ(job.events_for<Assignment>(1).size(), 2u);
  EXPECT_EQ(job.events_for<Assignment>(2)[1].generation(), 2);
  EXPECT_EQ(job.events_for<Assignment>(2)[1].world->restarts(), 1);
  EXPECT_TRUE(job.events_for<wire::Start>(1).empty());
  job.accept(2);
  EXPECT_TRUE(job.events_for<wire::Start>(2).empty());
  job.accept(1);
  EXPECT_EQ(job.events_for<wire::Start>(1).at(0).generation(), 2);
  EXPECT_EQ(job.events_for<wire::Start>(2).at(0).generation(), 2);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  for (const SessionId session : {1, 2}) job.finish(session);
  const Verdict verdict = *job.state.verdict();
  EXPECT_TRUE(succeeded(verdict));
  EXPECT_EQ(verdict.restarts(), 1);
  ASSERT_EQ(verdict.history().size(), 2u);
  EXPECT_EQ(verdict.history()[0].kind(), Verdict::RANK_FAILED);
  EXPECT_EQ(verdict.history()[1].kind(), Verdict::SUCCESS);
}

TEST(JobGenerations, ReadyOfAnotherGeneration_DoesNotCount) {
  Job job(restartable(job_of({"a"})));
  job.join_all(1);
  job.fail(1);
  job.ready(1, 0);
  job.ready(1, 2);
  EXPECT_EQ(job.state.phase(), Phase::kStopping);
  job.ready(1);
  job.accept(1, 1);
  EXPECT_EQ(job.state.phase(), Phase::kAgreeing);
}

TEST(JobGenerations, RestartsUsedUp_LastFailureIsTheVerdict) {
  Job job(restartable(job_of({"a"}), 2));
  job.join_all(1);
  for (int i = 0; i < 2; ++i) {
    job.fail(1, 3 + i);
    job.restart();
  }
  job.fail(1, 9);
  const Verdict verdict = job.verdict(1);
  EXPECT_EQ(exit_code_for(verdict), 9);
  EXPECT_EQ(verdict.restarts(), 2);
  EXPECT_EQ(verdict.history().size(), 3u);
}

TEST(JobGenerations, NoProgress_EndsWith116AndTheHistory) {
  Job job(restartable(job_of({"a"}), 50));
  job.join_all(1);
  for (int i = 0; i < 3; ++i) {
    job.fail(1);
    job.restart();
  }
  job.fail(1, 9);
  const Verdict verdict = job.verdict(1);
  EXPECT_EQ(verdict.kind(), Verdict::NO_PROGRESS);
  EXPECT_EQ(exit_code_for(verdict), kExitNoProgress);
  EXPECT_EQ(verdict.exit().code(), 9);
  EXPECT_EQ(verdict.history().size(), 4u);
}

TEST(JobGenerations, ReportedSteps_AreTheProgress) {
  Job job(restartable(job_of({"a"}), 50));
  job.join_all(1);
  for (int i = 0; i < 10; ++i) {
    StepReport report;
    report.add_ranks()->set_steps(10 + i);
    report.mutable_ranks(0)->set_step(10 + i);
    job.send(1, &wire::NodeMessage::mutable_steps, report);
    job.fail(1);
    job.restart();
  }
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_EQ(job.events_for<RestartCommand>(1).back().end().step(), 19);
}

TEST(JobGenerations, ExitThatARestartCannotHelp_EndsTheJob) {
  JobSpec spec = restartable(job_of({"a", "b"}));
  spec.restarts.final_exit = 2;
  Job job(spec);
  job.join_all(2);
  job.fail(1, 3);  // another code: restarted
  job.restart();
  job.fail(1, 2);
  EXPECT_EQ(job.events_for<RestartCommand>(1).size(), 1u);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::RANK_FAILED);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 2);
}

TEST(JobGenerations, StopDuringARestart_EndsTheJob) {
  Job job(restartable(job_of({"a", "b"})));
  job.join_all(2);
  job.fail(1);
  job.stop(2, SIGINT);
  job.after(1ms);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::STOPPED);
  EXPECT_EQ(exit_code_for(job.verdict(2)), 128 + SIGINT);
}

// A rank has failed, and the job was stopped before its restart.
TEST(JobGenerations, StopBehindAFailure_IsNotForgottenByARestart) {
  Job job(restartable(job_of({"a", "b"})));
  job.join_all(2);
  RankExit exit;
  exit.set_code(7);
  job.send(2, &wire::NodeMessage::mutable_exit, exit);
  job.stop(1, SIGTERM);
  job.after(250ms);
  EXPECT_TRUE(job.events_for<RestartCommand>(1).empty());
  EXPECT_EQ(exit_code_for(job.verdict(1)), 7);
}

TEST(JobGenerations, StopOfARunningJob_IsNoFailure) {
  Job job(restartable(job_of({"a", "b"})));
  job.join_all(2);
  job.stop(2, SIGTERM);
  job.fail(1, 143);
  job.finish(1);
  job.finish(2);
  EXPECT_EQ(job.state.verdict()->kind(), Verdict::STOPPED);
}

TEST(JobGenerations, LostNode_ComesBackAndTheJobGoesOn) {
  Job job(restartable(job_of({"a", "b", "c"})));
  job.join_all(3);
  job.lose(2);
  EXPECT_EQ(job.events_for<RestartCommand>(3).at(0).cause().kind(), Verdict::NODE_LOST);
  job.all_ready();
  EXPECT_EQ(job.state.phase(), Phase::kGathering);
  job.after(5s);
  EXPECT_THAT(job.events_for<JoinProgress>(1).back().line(), HasSubstr("waiting for b (node 1)"));
  job.join(9, "b");
  job.all_accept();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(job.events_for<Assignment>(9).at(0).node_rank, 1);
}

// Its connection broke, which the host has not noticed yet; it never received its Assignment.
TEST(JobGenerations, NodeJoinsAgainWhileItsRanksCount_IsItsLoss) {
  Job job(restartable(job_of({"a", "b", "c"})));
  job.join_all(3);
  job.alive.erase(2);
  job.join(9, "b");
  EXPECT_EQ(job.refusal(2).code(), ErrorCode::kStale);
  const auto order = job.events_for<RestartCommand>(3).at(0);
  EXPECT_EQ(order.cause().kind(), Verdict::NODE_LOST);
  EXPECT_EQ(order.cause().node_rank(), 1);
  EXPECT_THAT(order.cause().message(), HasSubstr("has connected again"));
  job.restart();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(job.events_for<Assignment>(9).back().node_rank, 1);
}

TEST(JobGenerations, NodeJoinsAgainWhileOthersStop_IsNotAwaited) {
  Job job(restartable(job_of({"a", "b", "c"})));
  job.join_all(3);
  job.fail(3);
  for (const SessionId session : {1, 3}) job.ready(session);
  ASSERT_EQ(job.state.phase(), Phase::kStopping);
  job.alive.erase(2);
  job.join(9, "b");
  job.all_accept();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
}

TEST(JobGenerations, NodeJoinsAgainWithoutRestarts_EndsTheJob) {
  Job job(job_of({"a", "b"}));
  job.join_all(2);
  job.alive.erase(2);
  job.join(9, "b");
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
  EXPECT_EQ(job.verdict(1).node_rank(), 1);
  EXPECT_EQ(job.refusal(9).code(), ErrorCode::kStale);
}

TEST(JobGenerations, SpareJoinsAgain_IsNoLoss) {
  Job job(restartable(job_of(2)));
  job.join_all(2);
  job.join(3, "c");
  job.join(9, "c");
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_EQ(job.events_for<Assignment>(9).at(0).node_rank, -1);
}

// It may be the next host, and has heard no RestartCommand.
TEST(JobGenerations, Newcomer_ReceivesTheHistory) {
  Job job(restartable(job_of({"a", "b"}), 5));
  job.join_all(2);
  job.fail(1);
  job.restart();
  job.lose(2);
  job.all_ready();
  job.join(9, "b");
  const auto history_for = [&](SessionId session) {
    std::vector<GenerationResult> history;
    for (const Outgoing& out : job.outgoing) {
      if (out.to != session) continue;
      for (const auto& end : out.message->assignment().history()) history.push_back(end);
    }
    return history;
  };
  const std::vector<GenerationResult> history = history_for(9);
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].kind(), Verdict::RANK_FAILED);
  EXPECT_EQ(history[1].kind(), Verdict::NODE_LOST);
  EXPECT_EQ(history[1].generation(), 2);
  EXPECT_TRUE(history_for(1).empty());  // it knows
}

TEST(JobGenerations, LostNodeDoesNotComeBack_IsTheVerdictAfterTheWait) {
  Job job(restartable(job_of({"a", "b", "c"})));
  job.join_all(3);
  job.lose(2);
  job.all_ready();
  job.after(29s);
  EXPECT_FALSE(job.state.verdict());
  job.after(1s);
  EXPECT_EQ(job.verdict(3).kind(), Verdict::NODE_LOST);
  EXPECT_THAT(job.verdict(3).message(), HasSubstr("2 nodes left of the 3"));
}

TEST(JobGenerations, Spare_WaitsAndStepsIn) {
  Job job(restartable(job_of(2)));
  job.join_all(2);
  job.join(3, "c");
  EXPECT_THAT(job.events_for<JoinProgress>(3).at(0).line(), HasSubstr("waits as a spare"));
  EXPECT_EQ(job.events_for<Assignment>(3).at(0).node_rank, -1);
  job.lose(2);
  EXPECT_TRUE(job.events_for<RestartCommand>(3).empty());
  job.ready(1);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "c"));
  job.all_accept();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_EQ(job.events_for<wire::Start>(3).size(), 1u);
}

TEST(JobGenerations, StopCommand_IsForThoseThatRun) {
  Job job(restartable(job_of(1)));
  job.join_all(1);
  job.join(2, "b");
  job.stop(1, SIGTERM);
  job.signal(1, SIGUSR1);
  EXPECT_EQ(job.events_for<StopCommand>(1).size(), 1u);
  EXPECT_TRUE(job.events_for<StopCommand>(2).empty());
  EXPECT_TRUE(job.events_for<SignalCommand>(2).empty());
  job.finish(1);
  job.after(1ms);
  EXPECT_EQ(job.verdict(2).kind(), Verdict::STOPPED);
}

TEST(JobGenerations, StoppedSpare_EndsAlone) {
  Job job(restartable(job_of(1)));
  job.join_all(1);
  job.join(2, "b");
  job.stop(2, SIGTERM);
  EXPECT_EQ(exit_code_for(job.verdict(2)), 128 + SIGTERM);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_EQ(job.state.joined(), 1);
}

TEST(JobGenerations, WordsOfASpare_DoNotCount) {
  Job job(restartable(job_of(1)));
  job.join_all(1);
  job.join(2, "b");
  RankExit exit;
  exit.set_code(1);
  job.finish(2);
  job.send(2, &wire::NodeMessage::mutable_exit, exit);
  job.send(2, &wire::NodeMessage::mutable_stall, {});
  job.after(5s);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
}

TEST(JobGenerations, SpareGone_IsNoLoss) {
  Job job(restartable(job_of(2)));
  job.join_all(2);
  job.join(3, "c");
  job.lose(3);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  job.join(4, "c");
  EXPECT_EQ(job.events_for<Assignment>(4).size(), 1u);
}

TEST(JobGenerations, SpareHearsTheEnd) {
  Job job(restartable(job_of(1)));
  job.join_all(1);
  job.join(2, "b");
  job.finish(1);
  job.after(1ms);
  EXPECT_TRUE(succeeded(job.verdict(2)));
}

TEST(JobGenerations, WithoutRestarts_NoSpares) {
  Job job(job_of(1));
  job.join_all(1);
  job.join(2, "b");
  EXPECT_EQ(job.events_for<wire::Failure>(2).size(), 1u);
}

TEST(JobGenerations, Elastic_BeginsWithFewerAfterTheWait) {
  Job job(elastic(2, 4));
  job.join_all(2);
  job.after(20s);
  job.join(3, "c");  // the wait begins again
  job.after(29s);
  EXPECT_EQ(job.state.phase(), Phase::kForming);
  job.after(1500ms);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
}

TEST(JobGenerations, Elastic_BeginsAtOnceWithAll) {
  Job job(elastic(2, 3));
  job.join_all(3);
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
}

TEST(JobGenerations, ElasticLoss_GoesOnWithTheRest) {
  Job job(elastic(2, 3));
  job.join_all(3);
  job.lose(2);
  job.restart();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "c"));
  EXPECT_EQ(job.events_for<Assignment>(3).back().node_rank, 1);
}

TEST(JobGenerations, ElasticJoin_RestartsWithMoreAfterTheWait) {
  Job job(elastic(2, 4));
  job.join_all(2);
  job.after(31s);
  job.join(3, "c");
  EXPECT_THAT(job.events_for<JoinProgress>(3).at(0).line(),
              HasSubstr("restarts with this node in 30 s"));
  job.after(31s);
  const auto order = job.events_for<RestartCommand>(2).at(0);
  EXPECT_EQ(order.cause().kind(), Verdict::RESIZED);
  EXPECT_EQ(order.restart(), 0);
  job.restart();
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(job.events_for<Assignment>(1).back().world->restarts(), 0);
}

TEST(JobGenerations, FailureJustBeforeTheWaitIsOver_IsTheCause) {
  Job job(elastic(2, 4));
  job.join_all(2);
  job.after(31s);
  job.join(3, "c");
  job.after(29'900ms);
  RankExit exit;
  exit.set_code(7);
  job.send(2, &wire::NodeMessage::mutable_exit, exit);
  job.after(2s);
  const auto order = job.events_for<RestartCommand>(2).at(0);
  EXPECT_EQ(order.cause().kind(), Verdict::RANK_FAILED);
  EXPECT_EQ(order.restart(), 1);
  job.restart();
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
}

TEST(JobGenerations, NodeHasFinishedBeforeTheWaitIsOver_TheJobEnds) {
  Job job(elastic(2, 4));
  job.join_all(2);
  job.after(31s);
  job.join(3, "c");
  job.finish(2);
  job.after(60s);
  EXPECT_TRUE(job.events_for<RestartCommand>(1).empty());
  job.finish(1);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::SUCCESS);
}

TEST(JobGenerations, ComesWhileOthersAgree_IsTakenInLaterAllTheSame) {
  Job job(elastic(2, 4));
  job.join_all(3);
  job.after(31s);
  job.lose(3);
  job.all_ready();
  ASSERT_EQ(job.state.phase(), Phase::kAgreeing);
  job.join(4, "d");
  EXPECT_TRUE(job.events_for<Assignment>(4).empty());
  for (const SessionId session : {1, 2}) job.accept(session);
  EXPECT_EQ(job.events_for<Assignment>(4).at(0).node_rank, -1);
  EXPECT_THAT(job.events_for<JoinProgress>(4).back().line(), HasSubstr("restarts with this node"));
  job.after(31s);
  job.restart();
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "d"));
}

TEST(JobGenerations, NewcomerGoneBeforeTheWait_NothingHappens) {
  Job job(elastic(2, 4));
  job.join_all(2);
  job.after(31s);
  job.join(3, "c");
  job.lose(3);
  job.after(60s);
  EXPECT_TRUE(job.events_for<RestartCommand>(1).empty());
}

TEST(JobGenerations, MinorityLeft_EndsRatherThanRunTwice) {
  Job job(elastic(1, 5));
  job.join_all(5);
  for (const SessionId session : {3, 4, 5}) job.lose(session);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
  EXPECT_THAT(job.verdict(1).message(), HasSubstr("majority"));
}

TEST(JobGenerations, LossesOneAfterTheOther_GoOnDownToOne) {
  Job job(elastic(1, 3));
  job.join_all(3);
  job.lose(3);
  job.restart();
  job.lose(2);
  job.restart();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a"));
}

TEST(JobGenerations, NodeLostWhileStopping_IsNotWaitedFor) {
  Job job(elastic(2, 3));
  job.join_all(3);
  job.fail(1);
  job.ready(1);
  job.ready(2);
  job.lose(3);
  job.all_accept();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b"));
}

// Those that know the new world are a majority of the old one: it counts, and is over at once.
TEST(JobGenerations, NodeLostWhileAgreeing_AnotherGenerationFollows) {
  Job job(elastic(1, 4));
  job.join_all(4);
  job.fail(1);
  job.all_ready();
  for (const SessionId session : {1, 2, 3}) job.accept(session);
  EXPECT_EQ(job.state.phase(), Phase::kAgreeing);
  job.lose(4);
  EXPECT_EQ(job.events_for<RestartCommand>(2).back().generation(), 2);
  job.restart();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
  EXPECT_EQ(job.state.generation(), 3);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
}

// Nobody but the host has accepted: the others may have chosen another one for what comes next.
TEST(JobGenerations, MajorityLostWhileAgreeing_Ends) {
  Job job(elastic(1, 4));
  job.join_all(4);
  job.fail(1);
  job.all_ready();
  for (const SessionId session : {2, 3, 4}) job.lose(session);
  job.accept(1);
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
}

// The last one that is waited for: with it gone the next, smaller world is there at once.
TEST(JobGenerations, SilentWhileStopping_TheOthersGoOn) {
  Job job(elastic(2, 5));
  job.join_all(5);
  job.alive.erase(4);
  job.after(200ms);
  for (const SessionId session : job.alive) job.heartbeat(session);
  job.alive.erase(5);
  while (job.events_for<RestartCommand>(1).empty()) job.after(20ms);
  for (const SessionId session : job.alive) job.ready(session);
  EXPECT_THAT(job.events_for<Assignment>(1), testing::SizeIs(1));
  job.after(1s);
  EXPECT_THAT(job.addresses(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(job.verdict(5).node(), "e");
}

TEST(JobGenerations, HostsOwnNodeGoneWhileStopping_BeginsNothing) {
  Job job(elastic(1, 3));
  job.join_all(3);
  job.fail(2);
  job.ready(1);
  job.lose(1);
  job.ready(2);
  job.ready(3);
  EXPECT_EQ(job.state.phase(), Phase::kGathering);
  EXPECT_EQ(job.state.generation(), 1);
}

TEST(JobGenerations, Hang_IsRestartedToo) {
  Job job(restartable(job_of({"a"})));
  job.join_all(1);
  job.send(1, &wire::NodeMessage::mutable_stall, RankStall());
  job.after(13s);
  EXPECT_EQ(job.events_for<RestartCommand>(1).at(0).cause().kind(), Verdict::HANG);
  job.restart();
  EXPECT_EQ(job.state.phase(), Phase::kRunning);
}

}  // namespace
}  // namespace fleet
