#include "daemon/remote_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// What it did, as words.
struct Effects : RemoteJobEffects {
  void launch(int node, int port) override {
    did.push_back("launch " + std::to_string(node) + " at " + std::to_string(port));
  }
  void signal(int node, int number) override {
    did.push_back("signal " + std::to_string(node) + " " + std::to_string(number));
  }
  void detach(int node) override { did.push_back("detach " + std::to_string(node)); }
  void close_session(int node) override { did.push_back("close session " + std::to_string(node)); }
  void warn(const std::string&) override {}
  void report_error(const std::string& text) override { failures.push_back(text); }
  void start_timer(std::chrono::milliseconds time) override {
    did.push_back("start timer " + std::to_string(time.count() / 1000));
  }
  void end(int exit_code) override { did.push_back("end " + std::to_string(exit_code)); }
  std::vector<std::string> take() { return std::exchange(did, {}); }

  std::vector<std::string> did, failures;
};

struct RemoteJobTest : ::testing::Test {
  static RemoteJob::Options in(RemoteJob::Mode mode) {
    RemoteJob::Options options;
    options.mode = mode;
    return options;
  }
  // Of three nodes, two are enough.
  static RemoteJob::Options elastic() {
    RemoteJob::Options options;
    options.min_nodes = 2;
    options.restarts = true;
    return options;
  }
  static VerdictSummary verdict(const std::string& text, int generation = 1,
                                bool node_lost = false) {
    VerdictSummary summary;
    summary.set_text(text);
    summary.set_generation(generation);
    summary.set_node_lost(node_lost);
    return summary;
  }
  static Error broke() { return {ErrorCode::kPeerLost, "broke"}; }

  void start(RemoteJob& which, int nodes = 2) {
    for (int node = 0; node < nodes; ++node) which.on_prepared(node);
    which.on_hosting(0, 7000);
  }
  void run(RemoteJob& which, int nodes = 2) {
    start(which, nodes);
    for (int node = 0; node < nodes; ++node) which.on_running(node, nodes);
    effects.take();
  }

  Effects effects;
  RemoteJob job{effects, {"a", "b"}, in(RemoteJob::Mode::kStart)};
};

TEST_F(RemoteJobTest, Nodes_AreLaunchedOnceAllHaveAPlace) {
  job.on_prepared(1);
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("launch 0 at 0"));
  job.on_hosting(0, 7000);
  EXPECT_THAT(effects.take(), ElementsAre("launch 1 at 7000"));
  job.on_ended(0, 0, verdict(""));
  job.on_ended(1, 0, verdict(""));
  EXPECT_THAT(effects.take(), ElementsAre("start timer 15", "end 0"));
}

TEST_F(RemoteJobTest, RefusedNode_NothingStarts) {
  job.on_prepared(0);
  job.on_refused(1, Error(ErrorCode::kUsage, "no GPUs are free"));
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "end 2"));
  EXPECT_THAT(effects.failures, ElementsAre(HasSubstr("fleetd on b: no GPUs are free")));
}

TEST_F(RemoteJobTest, RefusalBeforeTheOthersAnswer_HangsUpAsTheyDo) {
  job.on_refused(1, Error(ErrorCode::kUsage, "no"));
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "end 2"));
}

TEST_F(RemoteJobTest, UnreachableNode_EndsWith112) {
  job.on_prepared(0);
  job.on_lost(1, Error(ErrorCode::kPeerLost, "cannot be reached"));
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "end 112"));
}

TEST_F(RemoteJobTest, SecondLaunchRefused_TheFirstIsStopped) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  effects.take();
  job.on_refused(1, Error(ErrorCode::kUsage, "no such folder"));
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
  job.on_ended(0, 143, std::nullopt);
  EXPECT_THAT(effects.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Verdict_IsToldOnceAndDecides) {
  run(job);
  job.on_ended(1, 5, verdict("ABORT!!!"));
  job.on_ended(0, 5, verdict("ABORT!!!"));
  EXPECT_THAT(effects.take(), ElementsAre("start timer 15", "end 5"));
  EXPECT_THAT(effects.failures, ElementsAre("ABORT!!!"));
}

TEST_F(RemoteJobTest, KilledLauncher_TheOthersVerdictDecides) {
  run(job);
  job.on_ended(1, 137, std::nullopt);
  job.on_timer();
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_ended(0, 113, verdict("node 1 was lost", 1, true));
  EXPECT_EQ(effects.take().back(), "end 113");
  EXPECT_THAT(effects.failures,
              ElementsAre(HasSubstr("b was killed by SIGKILL"), "node 1 was lost"));
}

TEST_F(RemoteJobTest, LostFleetd_TheOthersJudge) {
  run(job);
  job.on_lost(0, broke());
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_ended(1, 113, verdict("node 0 was lost", 1, true));
  EXPECT_EQ(effects.take().back(), "end 113");
}

TEST_F(RemoteJobTest, FleetdLostBeforeTheyHaveMet_TheOthersAreStopped) {
  for (const bool running : {false, true}) {
    RemoteJob one(effects, {"a", "b"}, in(RemoteJob::Mode::kStart));
    start(one);
    effects.take();
    one.on_lost(1, broke());
    EXPECT_THAT(effects.take(), ElementsAre("start timer 2"));
    if (running) one.on_running(0, 2);  // they had met: the launchers know
    one.on_timer();
    if (!running) {
      EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
    }
    one.on_ended(0, running ? 113 : 143, verdict("", 1, running));
    EXPECT_EQ(effects.take(), std::vector<std::string>{"end 113"});
  }
}

TEST_F(RemoteJobTest, WhoDoesNotHearTheVerdict_IsStopped) {
  RemoteJob::Options options;
  options.grace = std::chrono::seconds(10);
  RemoteJob frozen(effects, {"a", "b", "c"}, options);
  run(frozen, 3);
  frozen.on_ended(0, 113, verdict("node 2 was lost", 1, true));
  frozen.on_ended(1, 113, verdict("node 2 was lost", 1, true));
  EXPECT_THAT(effects.take(), ElementsAre("start timer 25", "start timer 25"));
  frozen.on_timer();
  EXPECT_THAT(effects.take(), ElementsAre("signal 2 15"));
  frozen.on_ended(2, 143, std::nullopt);
  EXPECT_THAT(effects.take(), ElementsAre("end 113"));
}

TEST_F(RemoteJobTest, UsageErrorOfOne_StopsTheOthers) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  effects.take();
  job.on_ended(1, 2, std::nullopt);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
  job.on_ended(0, 143, std::nullopt);
  EXPECT_THAT(effects.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Signals_ArePassedOn) {
  run(job);
  job.on_signal(SIGUSR1);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 10"));  // which tells the whole job
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 2", "signal 1 2"));
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15", "signal 1 15"));
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "close session 1", "end 130"));
}

TEST_F(RemoteJobTest, KilledJob_IsNotANodeLost) {
  run(job);
  job.on_signal(SIGINT);
  job.on_signal(SIGINT);
  effects.take();
  job.on_ended(0, 130, std::nullopt);
  job.on_ended(1, 113, verdict("node 0 was lost", 1, true));
  EXPECT_EQ(effects.take().back(), "end 130");
  EXPECT_THAT(effects.failures, IsEmpty());
}

TEST_F(RemoteJobTest, SignalBeforeTheStart_LeavesNothing) {
  job.on_prepared(0);
  job.on_signal(SIGTERM);
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "close session 1", "end 143"));
}

TEST_F(RemoteJobTest, Detaching_WaitsForAllRanks) {
  RemoteJob away(effects, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  start(away);
  away.on_running(0, 2);
  effects.take();
  away.on_running(1, 2);
  EXPECT_THAT(effects.take(), ElementsAre("detach 0", "detach 1"));
  away.on_detached(0);
  EXPECT_FALSE(away.detached());
  away.on_detached(1);
  EXPECT_THAT(effects.take(), ElementsAre("end 0"));
  EXPECT_TRUE(away.detached());
}

TEST_F(RemoteJobTest, JobThatFailsBeforeItIsLeft_IsNotLeft) {
  RemoteJob away(effects, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  away.on_prepared(0);
  away.on_prepared(1);
  away.on_hosting(0, 7000);
  away.on_ended(0, 5, verdict("ABORT!!!"));
  away.on_ended(1, 5, verdict("ABORT!!!"));
  EXPECT_EQ(effects.take().back(), "end 5");
  EXPECT_FALSE(away.detached());
}

TEST_F(RemoteJobTest, AttachedClient_StopsNothingByItself) {
  RemoteJob attached(effects, {"a", "b"}, in(RemoteJob::Mode::kAttach));
  attached.on_lost(1, broke());
  attached.on_timer();
  EXPECT_THAT(effects.take(), IsEmpty());
  attached.on_ended(0, 5, verdict("ABORT!!!"));
  EXPECT_THAT(effects.take(), ElementsAre("end 5"));
  RemoteJob told(effects, {"a"}, in(RemoteJob::Mode::kAttach));
  told.on_signal(SIGTERM);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
}

TEST_F(RemoteJobTest, UserSignals_GoToANodeThatIsThere) {
  RemoteJob three(effects, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_lost(0, broke());
  three.on_signal(SIGUSR2);
  EXPECT_THAT(effects.take(), ElementsAre("signal 1 12"));
}

TEST_F(RemoteJobTest, ElasticJob_GoesOnWithoutANode) {
  RemoteJob three(effects, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_lost(0, broke());             // its rendezvous too: the next node hosts it
  three.on_ended(1, 137, std::nullopt);  // and one more
  three.on_running(2, 1);
  three.on_timer();
  EXPECT_THAT(effects.take(), IsEmpty());
  three.on_ended(2, 0, verdict("", 3));
  EXPECT_THAT(effects.take(), ElementsAre("end 0"));
}

TEST_F(RemoteJobTest, PartThatFellOff_HasNotTheLastWord) {
  RemoteJob three(effects, {"a", "b", "c"}, elastic());
  run(three, 3);
  three.on_ended(0, 113, verdict("node 1 was lost; no majority", 1, true));
  EXPECT_THAT(effects.take(), IsEmpty());  // the others may go on for days
  three.on_ended(1, 7, verdict("ABORT!!!", 2));
  three.on_ended(2, 7, verdict("ABORT!!!", 2));
  EXPECT_EQ(effects.take().back(), "end 7");
  EXPECT_THAT(effects.failures, ElementsAre("ABORT!!!"));
}

TEST_F(RemoteJobTest, ElasticJob_StartsWithoutAnUnreachableNode) {
  RemoteJob three(effects, {"a", "b", "c"}, elastic());
  three.on_prepared(0);
  three.on_lost(2, broke());
  EXPECT_THAT(effects.take(), IsEmpty());
  three.on_prepared(1);
  EXPECT_THAT(effects.take(), ElementsAre("launch 0 at 0"));
  three.on_hosting(0, 7000);
  EXPECT_THAT(effects.take(), ElementsAre("launch 1 at 7000"));
  // The first one is where they meet; a refusal is a mistake; one is too few.
  RemoteJob headless(effects, {"a", "b", "c"}, elastic());
  headless.on_lost(0, broke());
  headless.on_prepared(1);
  headless.on_prepared(2);
  EXPECT_THAT(effects.take(), ElementsAre("close session 1", "close session 2", "end 112"));
  RemoteJob refused(effects, {"a", "b", "c"}, elastic());
  refused.on_refused(2, Error(ErrorCode::kUsage, "no"));
  refused.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("close session 0"));
  RemoteJob few(effects, {"a", "b", "c"}, elastic());
  few.on_lost(1, broke());
  few.on_lost(2, broke());
  few.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("close session 0", "end 112"));
}

TEST_F(RemoteJobTest, SpareNode_DoesNotKeepTheClient) {
  RemoteJob::Options options = elastic();
  options.mode = RemoteJob::Mode::kDetach;
  RemoteJob away(effects, {"a", "b", "c"}, options);
  start(away, 3);
  away.on_running(0, 2);
  effects.take();
  away.on_running(1, 2);
  EXPECT_THAT(effects.take(), ElementsAre("detach 0", "detach 1", "detach 2"));
  for (int node = 0; node < 3; ++node) away.on_detached(node);
  EXPECT_THAT(effects.take(), ElementsAre("end 0"));
}

TEST_F(RemoteJobTest, NodeLostOnLeaving_IsNoSuccess) {
  RemoteJob away(effects, {"a", "b"}, in(RemoteJob::Mode::kDetach));
  run(away);
  away.on_detached(0);
  away.on_lost(1, broke());
  EXPECT_EQ(effects.take().back(), "end 113");
}

}  // namespace
}  // namespace fleet
