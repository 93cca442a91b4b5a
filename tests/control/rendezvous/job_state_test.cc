// A job comes together, and who is heard of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/control/rendezvous/recorded_job.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Job = SteadyJob;

TEST(JobState, OneNode_RunsAtOnce) {
  Job job(job_of({"a"}));
  job.join(1, node_of(job.spec, "a"));
  const auto assigned = job.events_for<Assignment>(1);
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].generation(), 1);
  EXPECT_EQ(assigned[0].node_rank, 0);
  EXPECT_EQ(assigned[0].world_size(), 2);
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, SeveralNodes_AllAssignedWhenTheLastComes) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "c"));
  job.join(2, node_of(job.spec, "a"));
  EXPECT_TRUE(job.events_for<Assignment>(1).empty());
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.events_for<Assignment>(1).at(0).node_rank, 2);
  EXPECT_EQ(job.events_for<Assignment>(2).at(0).node_rank, 0);
  EXPECT_EQ(job.events_for<Assignment>(3).at(0).node().first_rank(), 2);
  // One object for all: thousands of nodes do not get a copy each.
  EXPECT_EQ(job.events_for<Assignment>(1)[0].world, job.events_for<Assignment>(3)[0].world);
}

TEST(JobState, Waiting_SaysWhoIsMissingNowAndThen) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "a"));
  job.heartbeat_all_for(1500ms, {1});
  EXPECT_TRUE(job.events_for<JoinProgress>(1).empty());
  job.heartbeat_all_for(1000ms, {1});
  ASSERT_EQ(job.events_for<JoinProgress>(1).size(), 1u);
  EXPECT_EQ(job.events_for<JoinProgress>(1)[0].line(),
            "waiting for b (node 1), c (node 2) of 3 nodes; here: a");
  job.heartbeat_all_for(20s, {1});
  EXPECT_EQ(job.events_for<JoinProgress>(1).size(), 3u);
}

TEST(JobState, DeadlineWithNodesMissing_AllLearnTheirNames) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "a"));
  job.join(2, node_of(job.spec, "c"));
  job.heartbeat_all_for(300s, {1, 2});
  for (SessionId session : {1, 2}) {
    const Error error = job.refusal(session);
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.failure(), "only 2 of 3 nodes joined within 300 s: a, c; missing: b (node 1)");
    EXPECT_THAT(error.what(), HasSubstr("a:6768"));
  }
  job.join(3, node_of(job.spec, "b"));  // too late
  EXPECT_EQ(job.refusal(3).code(), ErrorCode::kStale);
}

TEST(JobState, NodeGoesWhileForming_PlaceIsFreeAgain) {
  Job job(job_of({"a", "b"}));
  job.join(2, node_of(job.spec, "b"));
  job.step(SessionLost{2});
  job.join(1, node_of(job.spec, "a"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kForming);
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, Mismatch_IsRefusedAndReportedToTheHost) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  wire::Join info = node_of(job.spec, "b");
  info.mutable_job()->set_version("0.0.1");
  job.join(2, info);
  EXPECT_EQ(job.refusal(2).code(), ErrorCode::kUsage);
  EXPECT_THAT(job.events_for<JoinProgress>(1).at(0).line(), HasSubstr("0.0.1"));
  job.join(3, node_of(job.spec, "b"));  // put right
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, AllowedSkew_IsAdmittedAndReportedToBoth) {
  JobSpec spec = job_of({"a", "b"});
  spec.config.set_allow_skew(true);
  Job job(spec);
  job.join(1, node_of(spec, "a"));
  wire::Join other = node_of(spec, "b");
  set_values(other.mutable_job()->mutable_fingerprint(), {{"NCCL_ALGO", "Ring"}});
  job.join(2, other);
  for (const SessionId session : {1, 2}) {
    const auto lines = job.events_for<JoinProgress>(session);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0].line(), HasSubstr("NCCL_ALGO is 'Ring' there"));
  }
  EXPECT_EQ(job.events_for<Assignment>(2).size(), 1u);
}

TEST(JobState, LateJoiner_RefusedNamingTheJobsNodes) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  wire::Join other = node_of(job.spec, "b");
  other.set_instance("another process");
  job.join(9, other);
  EXPECT_EQ(job.refusal(9).code(), ErrorCode::kStale);
  EXPECT_THAT(job.refusal(9).what(), HasSubstr("all its 2 nodes (a, b)"));
  EXPECT_FALSE(job.state.verdict());  // the running job is not touched
  job.join(10, node_of(job_of({"x", "y"}), "y"));
  EXPECT_EQ(job.refusal(10).code(), ErrorCode::kStale);
}

TEST(JobState, LateJoinerOfAnotherJob_IsRefusedWithTheReason) {
  Job job(job_of({"a"}));
  job.join_all();
  wire::Join info = node_of(job.spec, "b");
  info.mutable_job()->set_job_id("theirs");
  job.join(9, info);
  EXPECT_THAT(job.refusal(9).what(), HasSubstr("serves job 'default', not job 'theirs'"));
}

TEST(JobState, TheLongestSilent_IsDueToTheMoment) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.after(300ms);
  for (SessionId session : {1, 3}) job.heartbeat(session);
  const auto lost = job.now + 2700ms;  // b, heard last when it joined
  while (job.state.phase() == JobState::Phase::kRunning) {
    ASSERT_LE(job.state.next_deadline(), lost);
    if (job.state.next_deadline() < lost) {
      for (SessionId session : {1, 3}) job.heartbeat(session);
    }
    job.now = job.state.next_deadline();
    job.step(TimePassed{});
  }
  EXPECT_EQ(job.now, lost);
  EXPECT_EQ(job.verdict(1).node(), "b");
}

TEST(JobState, LargeJob_IsLenientUntilItHasSettled) {
  JobTimes times;
  times.startup_heartbeat_interval = 5s;
  times.startup_max_silence = 30s;
  times.startup_time = 5s;
  Job job(job_of({"a", "b"}), times);
  const auto welcomes = [&] {
    std::vector<std::chrono::milliseconds> silences;
    for (const Outgoing& out : job.outgoing) {
      if (!out.message->has_welcome()) continue;
      silences.push_back(std::chrono::milliseconds(out.message->welcome().max_silence_ms()));
    }
    return silences;
  };
  job.join(1, node_of(job.spec, "a"));
  job.pass(20s);  // silent all the time
  job.join(2, node_of(job.spec, "b"));
  EXPECT_EQ(welcomes(), (std::vector<std::chrono::milliseconds>{30s, 30s}));
  job.pass(4s);
  EXPECT_EQ(welcomes().size(), 2u);
  job.pass(2s);
  EXPECT_EQ(welcomes(), (std::vector<std::chrono::milliseconds>{30s, 30s, 3s, 3s}));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
  for (int i = 0; i < 6; ++i) {
    job.heartbeat(1);
    job.after(500ms);
  }
  EXPECT_EQ(job.verdict(1).node(), "b");
}

// Its threads are starved: its own session over the network is late too.
TEST(JobState, HostThatTakesNothingIn_BlamesNobody) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.step(TakenIn{job.now});
  job.pass(8s);
  EXPECT_FALSE(job.state.verdict());
  EXPECT_GT(job.state.next_deadline(), job.now);
  for (SessionId session : {1, 2}) job.heartbeat(session);  // what had arrived
  job.step(TakenIn{job.now});
  EXPECT_FALSE(job.state.verdict());
}

TEST(JobState, HostThatTakesInLate_NamesTheLimitAndItsDelayLater) {
  constexpr auto kDelay = 2s;
  Job job(job_of({"a", "b"}));
  job.join_all();
  for (const auto begin = job.now; !job.state.verdict(); job.pass(500ms)) {
    ASSERT_LT(job.now, begin + 10s);
    job.heartbeat(1);
    if (job.now - begin >= kDelay) job.step(TakenIn{job.now - kDelay});
    if (job.now - begin < 3s + kDelay) {
      ASSERT_FALSE(job.state.verdict());
    }
  }
  EXPECT_EQ(job.verdict(1).node(), "b");
}

TEST(JobState, HostThatNoLongerMeasuresItself_JudgesUpToThePresent) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.step(TakenIn{job.now});
  job.step(TakenIn{});
  job.heartbeat_all_for(3s, {1});
  EXPECT_EQ(job.verdict(1).node(), "b");
}

// Each call comes so late that the process looks suspended.
TEST(JobState, HostThatIsStarvedAllTheTime_StillNamesAFrozenNode) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  for (int i = 0; i < 20 && !job.state.verdict(); ++i) {
    job.now += 5s;
    job.step(TimePassed{});
    job.heartbeat(1);
  }
  EXPECT_EQ(job.verdict(1).node(), "b");
}

// A tenth of a core: 20 of every 200 ms, so that each call is late.
TEST(JobState, StarvedHost_StillNamesAFrozenNode) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  const auto begin = job.now;
  while (!job.state.verdict()) {
    job.now = std::max(job.state.next_deadline(), job.now) + 180ms;
    ASSERT_LT(job.now, begin + 10s);
    job.heartbeat(1);
    job.step(TimePassed{});
    job.step(TakenIn{job.now - 200ms});
  }
  EXPECT_EQ(job.verdict(1).node(), "b");
  EXPECT_GE(job.now, begin + 3s);
}

TEST(JobState, HeartbeatTimeout_BoundsHeartbeatsAndSilence) {
  for (const auto timeout : {500ms, 3000ms, 60'000ms}) {
    EXPECT_LT(max_silence_for(timeout), timeout);
    EXPECT_GT(max_silence_for(timeout), 5 * heartbeat_interval_for(timeout));
  }
}

TEST(JobState, Silence_NodeLostAfterTheLimitOnly) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.heartbeat_all_for(10s, {1, 2});
  EXPECT_FALSE(job.state.verdict());
  job.heartbeat_all_for(2s, {1});  // b's last heartbeat was half a second before
  EXPECT_FALSE(job.state.verdict());
  job.heartbeat_all_for(500ms, {1});
  EXPECT_EQ(job.verdict(1).kind(), Verdict::NODE_LOST);
  EXPECT_EQ(job.verdict(1).node(), "b");
  EXPECT_THAT(job.verdict(1).message(), HasSubstr("silent for 3 s"));
  EXPECT_EQ(job.verdict(2).message(), job.verdict(1).message());  // should it wake up
}

TEST(JobState, HostSleptItself_BlamesNobody) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.after(60s);
  EXPECT_FALSE(job.state.verdict());
  job.heartbeat_all_for(2s, {1});
  EXPECT_FALSE(job.state.verdict());
  job.heartbeat_all_for(1s, {1});  // but b does not come back
  EXPECT_EQ(job.verdict(1).node(), "b");
}

// It may come again (Ctrl-Z and fg).
TEST(JobState, SilentWhileForming_IsGivenUpAndMayJoinAgain) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "a"));
  job.join(2, node_of(job.spec, "b"));
  job.heartbeat_all_for(3500ms, {1});
  EXPECT_EQ(job.refusal(2).code(), ErrorCode::kPeerLost);
  job.join(3, node_of(job.spec, "b"));
  job.join(4, node_of(job.spec, "c"));
  EXPECT_EQ(job.events_for<Assignment>(3).at(0).node_rank, 1);
}

TEST(JobState, HostSuspendedWhileForming_TheTimeDoesNotCount) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.heartbeat_all_for(2s, {1});
  job.after(600s);
  EXPECT_EQ(job.state.phase(), JobState::Phase::kForming);
  job.heartbeat_all_for(300s, {1});
  EXPECT_EQ(job.refusal(1).code(), ErrorCode::kTimeout);
}

TEST(JobState, HostSuspendedWithAFailure_TakesInWhatHasArrivedFirst) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.fails(1, 0, kExitPeerLost);
  job.after(60s);
  EXPECT_FALSE(job.state.verdict());
  job.fails(2, 2, 7);  // waited in the socket
  job.settle();
  job.settle();
  EXPECT_EQ(job.verdict(1).exit().code(), 7);
}

TEST(JobState, ConnectionThatNeverJoins_IsClosed) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.step(SessionOpened{5});
  job.heartbeat_all_for(3s, {1, 5});  // only members heartbeat
  EXPECT_EQ(job.refusal(5).code(), ErrorCode::kPeerLost);
  EXPECT_EQ(job.state.joined(), 1);
}

TEST(JobState, ConnectionThatHasNotJoined_HasNoSay) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.step(SessionOpened{9});
  job.fails(9, 0, 1);
  job.finish(9);
  job.stop(9, SIGTERM);
  job.fails(77, 0, 1);  // nor one that is not even there
  job.finish(77);
  job.send(9, &wire::NodeMessage::mutable_leave);
  EXPECT_TRUE(job.outgoing.empty());
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, ReconnectWhileForming_OldSessionIsClosed) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.join(2, node_of(job.spec, "a"));
  EXPECT_EQ(job.refusal(1).code(), ErrorCode::kStale);
  job.step(SessionLost{1});  // the old stream ends at last: no harm
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, NextDeadline_IsNeverInThePastAfterAdvance) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  for (int i = 0; i < 100; ++i) {
    job.heartbeat(1);
    ASSERT_GT(job.state.next_deadline(), job.now);
    ASSERT_LE(job.state.next_deadline(), job.now + 500ms);
    job.now = job.state.next_deadline();
    job.step(TimePassed{});
  }
}

}  // namespace
}  // namespace fleet
