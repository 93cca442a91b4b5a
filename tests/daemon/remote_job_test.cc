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
  void hang_up(int node) override { did.push_back("hang up " + std::to_string(node)); }
  void say(const std::string&) override {}
  void fail(const std::string& text) override { failures.push_back(text); }
  void be_patient() override { did.push_back("be patient"); }
  void end(int exit_code) override { did.push_back("end " + std::to_string(exit_code)); }
  std::vector<std::string> take() { return std::exchange(did, {}); }

  std::vector<std::string> did, failures;
};

struct RemoteJobTest : ::testing::Test {
  Effects effects;
  RemoteJob job{effects, {"a", "b"}, RemoteJob::Mode::kStart};

  void run(RemoteJob& which) {
    which.on_prepared(0);
    which.on_prepared(1);
    which.on_hosting(0, 7000);
    which.on_running(0);
    which.on_running(1);
  }
};

TEST_F(RemoteJobTest, Nodes_AreLaunchedOnceAllHaveAPlace) {
  job.on_prepared(1);
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("launch 0 at 0"));
  job.on_hosting(0, 7000);
  EXPECT_THAT(effects.take(), ElementsAre("launch 1 at 7000"));
  job.on_ended(0, 0, "", true);
  job.on_ended(1, 0, "", true);
  EXPECT_THAT(effects.take(), ElementsAre("end 0"));
}

TEST_F(RemoteJobTest, RefusedNode_NothingStarts) {
  job.on_prepared(0);
  job.on_refused(1, Error(ErrorCode::kUsage, "no GPUs are free"));
  EXPECT_THAT(effects.take(), ElementsAre("hang up 0", "end 2"));
  EXPECT_THAT(effects.failures, ElementsAre(HasSubstr("fleetd on b: no GPUs are free")));
}

TEST_F(RemoteJobTest, RefusalBeforeTheOthersAnswer_HangsUpAsTheyDo) {
  job.on_refused(1, Error(ErrorCode::kUsage, "no"));
  EXPECT_THAT(effects.take(), IsEmpty());
  job.on_prepared(0);
  EXPECT_THAT(effects.take(), ElementsAre("hang up 0", "end 2"));
}

TEST_F(RemoteJobTest, UnreachableNode_EndsWith112) {
  job.on_prepared(0);
  job.on_lost(1, Error(ErrorCode::kPeerLost, "cannot be reached"));
  EXPECT_THAT(effects.take(), ElementsAre("hang up 0", "end 112"));
}

TEST_F(RemoteJobTest, SecondLaunchRefused_TheFirstIsStopped) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  effects.take();
  job.on_refused(1, Error(ErrorCode::kUsage, "no such folder"));
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
  job.on_ended(0, 143, "", false);
  EXPECT_THAT(effects.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Verdict_IsToldOnceAndDecides) {
  run(job);
  effects.take();
  job.on_ended(1, 5, "ABORT!!!", true);
  job.on_ended(0, 5, "ABORT!!!", true);
  EXPECT_THAT(effects.take(), ElementsAre("end 5"));
  EXPECT_THAT(effects.failures, ElementsAre("ABORT!!!"));
}

TEST_F(RemoteJobTest, KilledLauncher_TheOthersVerdictDecides) {
  run(job);
  effects.take();
  job.on_ended(1, 137, "", false);
  EXPECT_THAT(effects.take(), ElementsAre("be patient"));
  job.on_ended(0, 113, "node 1 was lost", true);
  EXPECT_THAT(effects.take(), ElementsAre("end 113"));
  EXPECT_THAT(effects.failures,
              ElementsAre(HasSubstr("b was killed by SIGKILL"), "node 1 was lost"));
}

TEST_F(RemoteJobTest, LostFleetd_TheOthersAreWaitedForAndThenStopped) {
  run(job);
  effects.take();
  job.on_lost(0, Error(ErrorCode::kPeerLost, "broke"));
  EXPECT_THAT(effects.take(), ElementsAre("be patient"));
  job.on_patience_over();
  EXPECT_THAT(effects.take(), ElementsAre("signal 1 15"));
  job.on_ended(1, 143, "", true);
  EXPECT_THAT(effects.take(), ElementsAre("end 113"));
}

TEST_F(RemoteJobTest, FleetdLostBeforeAllIsHeard_TheOthersVerdictDecides) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  job.on_running(0);
  effects.take();
  job.on_lost(1, Error(ErrorCode::kPeerLost, "broke"));
  EXPECT_THAT(effects.take(), ElementsAre("be patient"));
  job.on_ended(0, 113, "node 1 was lost", true);
  EXPECT_THAT(effects.take(), ElementsAre("end 113"));
}

TEST_F(RemoteJobTest, UsageErrorOfOne_StopsTheOthers) {
  job.on_prepared(0);
  job.on_prepared(1);
  job.on_hosting(0, 7000);
  effects.take();
  job.on_ended(1, 2, "", false);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
  job.on_ended(0, 143, "", false);
  EXPECT_THAT(effects.take(), ElementsAre("end 2"));
}

TEST_F(RemoteJobTest, Signals_ArePassedOn) {
  run(job);
  effects.take();
  job.on_signal(SIGUSR1);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 10", "signal 1 10"));
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 2", "signal 1 2"));
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15", "signal 1 15"));
  job.on_signal(SIGINT);
  EXPECT_THAT(effects.take(), ElementsAre("hang up 0", "hang up 1", "end 130"));
}

TEST_F(RemoteJobTest, KilledJob_IsNotANodeLost) {
  run(job);
  job.on_signal(SIGINT);
  job.on_signal(SIGINT);
  effects.take();
  job.on_ended(0, 130, "", false);
  job.on_ended(1, 113, "node 0 was lost", true);
  EXPECT_EQ(effects.take().back(), "end 130");
  EXPECT_THAT(effects.failures, IsEmpty());
}

TEST_F(RemoteJobTest, SignalBeforeTheStart_LeavesNothing) {
  job.on_prepared(0);
  job.on_signal(SIGTERM);
  EXPECT_THAT(effects.take(), ElementsAre("hang up 0", "hang up 1", "end 143"));
}

TEST_F(RemoteJobTest, Detaching_WaitsForAllRanks) {
  RemoteJob away(effects, {"a", "b"}, RemoteJob::Mode::kDetach);
  away.on_prepared(0);
  away.on_prepared(1);
  away.on_hosting(0, 7000);
  away.on_running(0);
  effects.take();
  away.on_running(1);
  EXPECT_THAT(effects.take(), ElementsAre("detach 0", "detach 1"));
  away.on_detached(0);
  EXPECT_FALSE(away.detached());
  away.on_detached(1);
  EXPECT_THAT(effects.take(), ElementsAre("end 0"));
  EXPECT_TRUE(away.detached());
}

TEST_F(RemoteJobTest, JobThatFailsBeforeItIsLeft_IsNotLeft) {
  RemoteJob away(effects, {"a", "b"}, RemoteJob::Mode::kDetach);
  away.on_prepared(0);
  away.on_prepared(1);
  away.on_hosting(0, 7000);
  away.on_ended(0, 5, "ABORT!!!", true);
  away.on_ended(1, 5, "ABORT!!!", true);
  EXPECT_EQ(effects.take().back(), "end 5");
  EXPECT_FALSE(away.detached());
}

TEST_F(RemoteJobTest, AttachedClient_StopsNothingByItself) {
  RemoteJob attached(effects, {"a", "b"}, RemoteJob::Mode::kAttach);
  attached.on_lost(1, Error(ErrorCode::kPeerLost, "broke"));
  attached.on_patience_over();
  EXPECT_THAT(effects.take(), ElementsAre("be patient", "hang up 0", "end 113"));
  RemoteJob told(effects, {"a"}, RemoteJob::Mode::kAttach);
  told.on_signal(SIGTERM);
  EXPECT_THAT(effects.take(), ElementsAre("signal 0 15"));
}

}  // namespace
}  // namespace fleet
