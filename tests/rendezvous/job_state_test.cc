#include "rendezvous/job_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/rendezvous/nodes.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A job whose clock is a number; session i+1 is the node of the i-th address.
class Job {
 public:
  explicit Job(JobSpec spec, JobTimes times = {}) : spec(spec), state(spec, times, "a:6768", now) {}

  void join(SessionId session, const NodeInfo& info) {
    state.opened(session, now);
    state.join(session, info, now);
    collect();
  }
  // What is shared is encoded once.
  bool shares_last_with(SessionId one, SessionId other) const {
    const auto last = [this](SessionId session) {
      const HostEvent* event = nullptr;
      for (const Outgoing& out : heard) {
        if (out.to == session) event = out.event.get();
      }
      return event;
    };
    return last(one) != nullptr && last(one) == last(other);
  }
  void join_all() {
    for (size_t i = 0; i < spec.addresses.size(); ++i) {
      join(i + 1, node_of(spec, spec.addresses[i]));
    }
    heard.clear();
  }
  void after(std::chrono::milliseconds time) {
    now += time;
    state.advance(now);
    collect();
  }
  void beat_all_for(std::chrono::milliseconds time, std::vector<SessionId> sessions) {
    for (auto end = now + time; now < end;) {
      for (SessionId session : sessions) state.beat(session, now);
      after(500ms);
    }
  }
  void fails(SessionId session, int rank, int code, bool killed = false) {
    RankExit exit;
    exit.rank = rank;
    exit.local_rank = rank % 2;
    exit.code = code;
    exit.killed_by_us = killed;
    exit.ran_for = 1500ms;
    state.rank_exited(session, exit, now);
    collect();
  }
  // Until failures that came together have been put in order.
  void settle() { after(250ms); }
  void finish(SessionId session) {
    state.finished(session, now);
    collect();
  }
  template <typename Event>
  std::vector<Event> heard_by(SessionId session) const {
    std::vector<Event> found;
    for (const Outgoing& out : heard) {
      if (out.to != session) continue;
      if (const auto* event = std::get_if<RendezvousEvent>(out.event.get())) {
        if (const auto* wanted = std::get_if<Event>(event)) found.push_back(*wanted);
      }
    }
    return found;
  }
  // The refusal that ended this session.
  Error refusal(SessionId session) const {
    const auto found = heard_by<Refusal>(session);
    return found.size() == 1 ? found[0].error : Error(ErrorCode::kInternal, "not refused once");
  }
  Verdict verdict(SessionId session) const {
    const auto found = heard_by<Verdict>(session);
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Verdict{} : found[0];
  }
  void collect() {
    for (auto& out : state.take_outgoing()) heard.push_back(std::move(out));
  }

  JobSpec spec;
  JobState::Time now{};
  JobState state;
  std::vector<Outgoing> heard;
};

TEST(JobState, OneNode_RunsAtOnce) {
  Job job(job_of({"a"}));
  job.join(1, node_of(job.spec, "a"));
  const auto assigned = job.heard_by<Assignment>(1);
  ASSERT_EQ(assigned.size(), 1u);
  EXPECT_EQ(assigned[0].epoch(), 1);
  EXPECT_EQ(assigned[0].node_rank, 0);
  EXPECT_EQ(assigned[0].world_size(), 2);
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, SeveralNodes_AllAssignedWhenTheLastComes) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "c"));
  job.join(2, node_of(job.spec, "a"));
  EXPECT_TRUE(job.heard_by<Assignment>(1).empty());
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.heard_by<Assignment>(1).at(0).node_rank, 2);
  EXPECT_EQ(job.heard_by<Assignment>(2).at(0).node_rank, 0);
  EXPECT_EQ(job.heard_by<Assignment>(3).at(0).first_rank(), 2);
  // One object for all: thousands of nodes do not get a copy each.
  EXPECT_EQ(job.heard_by<Assignment>(1)[0].world, job.heard_by<Assignment>(3)[0].world);
}

TEST(JobState, Waiting_SaysWhoIsMissingNowAndThen) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "a"));
  job.beat_all_for(1500ms, {1});
  EXPECT_TRUE(job.heard_by<JoinProgress>(1).empty());
  job.beat_all_for(1000ms, {1});
  ASSERT_EQ(job.heard_by<JoinProgress>(1).size(), 1u);
  EXPECT_EQ(job.heard_by<JoinProgress>(1)[0].line,
            "waiting for b (node 1), c (node 2) of 3 nodes; here: a");
  job.beat_all_for(20s, {1});
  EXPECT_EQ(job.heard_by<JoinProgress>(1).size(), 3u);
}

TEST(JobState, DeadlineWithNodesMissing_EveryoneThereIsToldWho) {
  Job job(job_of({"a", "b", "c"}));
  job.join(1, node_of(job.spec, "a"));
  job.join(2, node_of(job.spec, "c"));
  job.beat_all_for(300s, {1, 2});
  for (SessionId session : {1, 2}) {
    const Error error = job.refusal(session);
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.failure(), "only 2 of 3 nodes came within 300 s: a, c; missing: b (node 1)");
    EXPECT_THAT(error.what(), HasSubstr("--rdzv_timeout"));
    EXPECT_THAT(error.what(), HasSubstr("a:6768"));
  }
  job.join(3, node_of(job.spec, "b"));  // too late
  EXPECT_EQ(job.refusal(3).code(), ErrorCode::kStale);
  EXPECT_THAT(job.refusal(3).what(), HasSubstr("only 2 of 3 nodes came"));
}

TEST(JobState, NodeGoesWhileForming_PlaceIsFreeAgain) {
  Job job(job_of({"a", "b"}));
  job.join(2, node_of(job.spec, "b"));
  job.state.lost(2, "vanished", job.now);
  job.join(1, node_of(job.spec, "a"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kForming);
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, Mismatch_RefusedAndTheHostIsTold) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  NodeInfo info = node_of(job.spec, "b");
  info.job.version = "0.0.1";
  job.join(2, info);
  EXPECT_EQ(job.refusal(2).code(), ErrorCode::kUsage);
  EXPECT_THAT(job.heard_by<JoinProgress>(1).at(0).line, HasSubstr("0.0.1"));
  job.join(3, node_of(job.spec, "b"));  // put right
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, AllowedSkew_IsInAndBothAreTold) {
  JobSpec spec = job_of({"a", "b"});
  spec.allow_skew = true;
  Job job(spec);
  job.join(1, node_of(spec, "a"));
  NodeInfo other = node_of(spec, "b");
  other.job.alike = {{"NCCL_ALGO", "Ring"}};
  job.join(2, other);
  for (const SessionId session : {1, 2}) {
    const auto lines = job.heard_by<JoinProgress>(session);
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_THAT(lines[0].line, HasSubstr("NCCL_ALGO is 'Ring' there and not set on the host"));
  }
  EXPECT_EQ(job.heard_by<Assignment>(2).size(), 1u);
}

TEST(JobState, LateJoiner_RefusedNamingTheJobsNodes) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.join(9, node_of(job.spec, "b"));
  EXPECT_EQ(job.refusal(9).code(), ErrorCode::kStale);
  EXPECT_THAT(job.refusal(9).what(), HasSubstr("already runs with all its 2 nodes (a, b)"));
  EXPECT_FALSE(job.state.verdict());  // the running job is not touched
  job.join(10, node_of(job_of({"x", "y"}), "y"));
  EXPECT_EQ(job.refusal(10).code(), ErrorCode::kStale);
}

TEST(JobState, LateJoinerOfAnotherJob_IsToldSo) {
  Job job(job_of({"a"}));
  job.join_all();
  NodeInfo info = node_of(job.spec, "b");
  info.job.job_id = "theirs";
  job.join(9, info);
  EXPECT_THAT(job.refusal(9).what(), HasSubstr("serves job 'default', not job 'theirs'"));
}

TEST(JobState, FirstFailure_IsTheVerdictOfAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(2, 3, 7);
  job.settle();
  job.fails(1, 0, 1);  // a cascade, later
  for (SessionId session : {1, 2}) {
    const Verdict verdict = job.verdict(session);
    EXPECT_EQ(verdict.kind, VerdictKind::kRankFailed);
    EXPECT_EQ(verdict.exit.rank, 3);
    EXPECT_EQ(verdict.node_rank, 1);
    EXPECT_EQ(verdict.message,
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

TEST(JobState, TheLongestSilent_IsDueToTheMoment) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.after(300ms);
  for (SessionId session : {1, 3}) job.state.beat(session, job.now);
  const auto lost = job.now + 2700ms;  // b, heard last when it joined
  while (job.state.phase() == JobState::Phase::kRunning) {
    ASSERT_LE(job.state.next_deadline(), lost);
    if (job.state.next_deadline() < lost) {
      for (SessionId session : {1, 3}) job.state.beat(session, job.now);
    }
    job.now = job.state.next_deadline();
    job.state.advance(job.now);
    job.collect();
  }
  EXPECT_EQ(job.now, lost);
  EXPECT_EQ(job.verdict(1).node, "b");
}

TEST(JobState, LargeJob_IsLenientUntilItHasSettled) {
  JobTimes times;
  times.early_beat = 5s;
  times.early_silence = 30s;
  times.settles_in = 5s;
  Job job(job_of({"a", "b"}), times);
  const auto welcomes = [&] {
    std::vector<std::chrono::milliseconds> silences;
    for (const Outgoing& out : job.heard) {
      if (const auto* welcome = std::get_if<Welcome>(out.event.get())) {
        silences.push_back(welcome->silence);
      }
    }
    return silences;
  };
  job.join(1, node_of(job.spec, "a"));
  job.after(20s);  // silent all the time
  job.join(2, node_of(job.spec, "b"));
  EXPECT_EQ(welcomes(), (std::vector<std::chrono::milliseconds>{30s, 30s}));
  job.after(4s);
  job.after(5s);
  EXPECT_EQ(welcomes(), (std::vector<std::chrono::milliseconds>{30s, 30s, 3s, 3s}));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
  for (int i = 0; i < 6; ++i) {
    job.state.beat(1, job.now);
    job.after(500ms);
  }
  EXPECT_EQ(job.verdict(1).node, "b");
}

TEST(JobState, KilledByUs_IsNeverTheCause) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, 143, true);
  EXPECT_FALSE(job.state.verdict());
  job.fails(2, 2, 9);
  job.settle();
  EXPECT_EQ(job.verdict(1).exit.rank, 2);
}

TEST(JobState, RankThatLostAPeer_IsTheCauseOnlyWhereNoneOtherComes) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, kExitPeerLost);
  EXPECT_FALSE(job.state.verdict());
  EXPECT_EQ(job.state.next_deadline(), job.now + 500ms);
  job.fails(2, 3, 9);
  job.settle();
  EXPECT_EQ(job.verdict(1).exit.rank, 3);

  Job alone(job_of({"a", "b"}));
  alone.join_all();
  alone.fails(2, 2, kExitPeerLost);
  alone.fails(1, 0, kExitPeerLost);
  alone.after(499ms);
  EXPECT_FALSE(alone.state.verdict());
  alone.after(1ms);
  EXPECT_EQ(alone.verdict(1).exit.rank, 2);  // the first of them

  Job over(job_of({"a"}));
  over.join_all();
  over.fails(1, 0, kExitPeerLost);
  over.finish(1);  // nobody is left to wait for
  EXPECT_EQ(over.verdict(1).exit.code, kExitPeerLost);
}

TEST(JobState, FailureWhileAnotherNodeIsOverdue_WaitsUntilThatIsHeardOrLost) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.beat_all_for(2s, {1, 2});  // c is silent
  job.fails(1, 0, 1);
  job.beat_all_for(500ms, {1, 2});
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(1s, {1, 2});
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kNodeLost);
  EXPECT_EQ(job.verdict(1).node, "c");

  Job heard(job_of({"a", "b", "c"}));
  heard.join_all();
  heard.beat_all_for(2s, {1, 2});
  heard.fails(1, 0, 1);
  heard.beat_all_for(500ms, {1, 2, 3});
  EXPECT_EQ(heard.verdict(1).exit.code, 1);
}

TEST(JobState, CascadeThatIsHeardFirst_IsNotTheVerdict) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.after(1s);
  const auto exit_at = [&](int rank, int signal, std::chrono::nanoseconds before) {
    RankExit exit;
    exit.rank = rank;
    exit.code = signal == 0;
    exit.signal = signal;
    exit.at_ns = (job.now.time_since_epoch() - before).count();
    exit.at_error_ns = 1'000'000;
    return exit;
  };
  job.state.rank_exited(1, exit_at(0, 0, 2ms), job.now);
  job.after(100ms);
  job.state.rank_exited(2, exit_at(3, 9, 103ms), job.now);
  job.settle();
  EXPECT_EQ(job.verdict(1).exit.rank, 3);
}

TEST(JobState, RankLostAPeerOfALostNode_NodeIsTheCause) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.fails(1, 0, kExitPeerLost);
  job.state.lost(2, "vanished", job.now);
  job.collect();
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kNodeLost);
}

TEST(JobState, StacksAreAskedFor_TheAskerGetsThemAndTheJobGoesOn) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.stacks_wished(2, job.now);
  job.collect();
  ASSERT_EQ(job.heard_by<StackOrder>(1).size(), 1u);
  EXPECT_FALSE(job.heard_by<StackOrder>(1)[0].hang);
  job.state.stacks_came(1, {RankStack{.rank = 0}}, job.now);
  job.beat_all_for(5s, {1, 2});
  ASSERT_EQ(job.heard_by<StackReport>(2).size(), 1u);
  EXPECT_EQ(job.heard_by<StackReport>(2)[0].stacks.size(), 1u);
  EXPECT_EQ(job.heard_by<StackReport>(2)[0].silent, std::vector<int>{1});
  EXPECT_TRUE(job.heard_by<StackReport>(1).empty());
  EXPECT_FALSE(job.state.verdict());
  job.state.stacks_wished(2, job.now);  // again
  job.collect();
  EXPECT_EQ(job.heard_by<StackOrder>(1).size(), 2u);
}

TEST(JobState, UserSignal_IsForAll) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.signal_wished(2, 10, job.now);
  job.collect();
  for (SessionId session : {1, 2}) {
    ASSERT_EQ(job.heard_by<SignalOrder>(session).size(), 1u);
    EXPECT_EQ(job.heard_by<SignalOrder>(session)[0].signal, 10);
  }
}

TEST(JobState, HostThatHearsNobody_BlamesNobody) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  for (int i = 0; i < 8; ++i) job.after(500ms);  // also a, its own node, is not heard
  EXPECT_FALSE(job.state.verdict());
  EXPECT_GT(job.state.next_deadline(), job.now);
  job.beat_all_for(2s, {1, 2});
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(4s, {1});
  EXPECT_EQ(job.verdict(1).node, "b");
}

TEST(JobState, HeartbeatTimeout_BoundsBeatsAndSilence) {
  for (const auto timeout : {500ms, 3000ms, 60'000ms}) {
    EXPECT_LT(silence_for(timeout), timeout);
    EXPECT_GT(silence_for(timeout), 5 * beat_for(timeout));
  }
}

TEST(JobState, KilledByUsWithoutAnOrder_IsNoSuccess) {
  Job job(job_of({"a"}));
  job.join_all();
  job.fails(1, 0, 143, true);
  job.finish(1);
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kStopped);
}

TEST(JobState, AllFinished_Success) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.finish(2);
  job.finish(2);  // said twice counts once
  ASSERT_EQ(job.heard_by<PeerEvent>(1).size(), 1u);
  EXPECT_EQ(job.heard_by<PeerEvent>(1)[0].node, "b");
  EXPECT_FALSE(job.state.verdict());
  job.finish(1);
  EXPECT_EQ(job.verdict(2).kind, VerdictKind::kSuccess);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 0);
}

TEST(JobState, StreamLost_NodeLostAtOnce) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.lost(2, "vanished", job.now);
  job.collect();
  const Verdict verdict = job.verdict(1);
  EXPECT_EQ(verdict.kind, VerdictKind::kNodeLost);
  EXPECT_EQ(verdict.message, "node 1 (b, host host-b) was lost: its fleetrun vanished");
  EXPECT_EQ(exit_code_for(verdict), kExitNodeLost);
}

TEST(JobState, LeftBeforeFinishing_NodeLost_AfterFinishing_Not) {
  Job job(job_of({"a", "b", "c"}));
  job.join_all();
  job.finish(2);
  job.state.left(2, job.now);
  job.collect();
  EXPECT_FALSE(job.state.verdict());
  job.state.left(3, job.now);
  job.collect();
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kNodeLost);
  EXPECT_THAT(job.verdict(1).message, HasSubstr("left before its ranks had ended"));
}

TEST(JobState, NodeWithServersLeftAfterFinishing_NodeLost) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  NodeInfo serving = node_of(job.spec, "b");
  serving.servers = 1;
  job.join(2, serving);
  job.finish(2);
  job.state.left(2, job.now);
  job.collect();
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kNodeLost);
}

// A job of two nodes with two ranks each, in which rank 3 makes no progress.
struct HangingJob : ::testing::Test {
  HangingJob() {
    job.join_all();
    job.state.rank_stalled(2, {3, false, 1, 30s, "log/workerlog.1"}, job.now);
    job.collect();
  }
  void send(SessionId node, std::vector<std::string> first, std::vector<std::string> second) {
    const int rank = node == 1 ? 0 : 2;
    job.state.stacks_came(node,
                          {{rank, false, 0, -1, 'S', "", std::move(first), ""},
                           {rank + 1, false, 1, -1, 'S', "", std::move(second), ""}},
                          job.now);
    job.collect();
  }
  Job job{job_of({"a", "b"})};
};

TEST_F(HangingJob, EveryNodeIsAsked_TheOddOneIsNamed) {
  EXPECT_EQ(job.heard_by<StackOrder>(1).size(), 1u);
  EXPECT_EQ(job.heard_by<StackOrder>(2).size(), 1u);
  send(1, {"wait"}, {"read"});
  EXPECT_FALSE(job.state.verdict());
  send(2, {"wait"}, {"wait"});
  for (const SessionId node : {1, 2}) {
    const Verdict verdict = job.verdict(node);
    EXPECT_EQ(verdict.kind, VerdictKind::kHang);
    EXPECT_EQ(exit_code_for(verdict), kExitHang);
    EXPECT_EQ(verdict.exit.rank, 1);
    EXPECT_EQ(verdict.node, "a");
    EXPECT_THAT(verdict.message, AllOf(HasSubstr("rank 3 on node 1"), HasSubstr("for 30 s"),
                                       HasSubstr("look at rank 1 (local rank 1) on node 0"),
                                       HasSubstr("ranks 0,2-3"), HasSubstr("#0 read")));
  }
}

TEST_F(HangingJob, NobodyStandsOut_TheFirstNoticedIsNamed) {
  send(1, {"wait"}, {"wait"});
  send(2, {"wait"}, {"wait"});
  EXPECT_EQ(job.verdict(1).exit.rank, 3);
  EXPECT_EQ(job.verdict(1).exit.log_path, "log/workerlog.1");
}

TEST_F(HangingJob, NodeThatSendsNothing_IsNotWaitedForLong) {
  send(2, {"wait"}, {"wait"});
  job.beat_all_for(5s, {1, 2});
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kHang);
  EXPECT_THAT(job.verdict(1).message, HasSubstr("node 0 has sent no stacks"));
}

TEST_F(HangingJob, RankFailsMeanwhile_IsTheVerdict) {
  RankExit exit;
  exit.rank = 0;
  exit.code = 7;
  job.state.rank_exited(1, exit, job.now);
  send(1, {"wait"}, {"wait"});
  send(2, {"wait"}, {"wait"});
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kRankFailed);
}

TEST(JobState, Silence_NodeLostAfterTheLimitOnly) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.beat_all_for(10s, {1, 2});
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(2s, {1});  // b's last beat was half a second before
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(500ms, {1});
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kNodeLost);
  EXPECT_EQ(job.verdict(1).node, "b");
  EXPECT_THAT(job.verdict(1).message, HasSubstr("silent for 3 s"));
  EXPECT_EQ(job.verdict(2).message, job.verdict(1).message);  // should it wake up
}

TEST(JobState, HostSleptItself_BlamesNobody) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.after(60s);
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(2500ms, {1});
  EXPECT_FALSE(job.state.verdict());
  job.beat_all_for(1s, {1});  // but b does not come back
  EXPECT_EQ(job.verdict(1).node, "b");
}

TEST(JobState, ConnectionThatNeverJoins_IsClosed) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.state.opened(5, job.now);
  job.beat_all_for(3s, {1, 5});  // only members beat
  EXPECT_EQ(job.refusal(5).code(), ErrorCode::kPeerLost);
  EXPECT_EQ(job.state.joined(), 1);
}

TEST(JobState, ConnectionThatHasNotJoined_HasNoSay) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.opened(9, job.now);
  job.fails(9, 0, 1);
  job.finish(9);
  job.state.stop_wished(9, SIGTERM, job.now);
  job.fails(77, 0, 1);  // nor one that is not even there
  job.finish(77);
  job.state.left(9, job.now);
  job.collect();
  EXPECT_TRUE(job.heard.empty());
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, StopWish_OrdersAllThenVerdictWhenAllFinished) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.stop_wished(2, SIGTERM, job.now);
  job.collect();
  EXPECT_EQ(job.heard_by<StopOrder>(1).at(0).signal, SIGTERM);
  EXPECT_EQ(job.heard_by<StopOrder>(2).at(0).node, "b");
  job.fails(1, 0, 1);  // what ends after the order ends because of it
  EXPECT_FALSE(job.state.verdict());
  job.finish(1);
  job.state.stop_wished(2, SIGINT, job.now);  // again: passed on, but the first is the verdict
  job.collect();
  EXPECT_EQ(job.heard_by<StopOrder>(1).at(1).signal, SIGINT);
  job.finish(2);
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kStopped);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 128 + SIGTERM);
  EXPECT_EQ(job.verdict(1).message, "stopped by SIGTERM to the launcher of node 1 (b)");
}

TEST(JobState, NodeLostWhileStopping_StopStaysTheVerdict) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.stop_wished(1, SIGINT, job.now);
  job.finish(1);
  job.state.lost(2, "vanished", job.now);
  job.collect();
  EXPECT_EQ(job.heard_by<PeerEvent>(1).back().kind, PeerEvent::Kind::kLost);
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kStopped);
}

TEST(JobState, StopWishWhileForming_EndsTheWaiting) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.state.stop_wished(1, SIGINT, job.now);
  job.collect();
  EXPECT_EQ(job.verdict(1).kind, VerdictKind::kStopped);
  EXPECT_EQ(exit_code_for(job.verdict(1)), 130);
}

TEST(JobState, HostEnds_EveryoneHearsNodeZeroIsLost) {
  Job job(job_of({"a", "b"}));
  job.join_all();
  job.state.shut_down(job.now);
  job.collect();
  EXPECT_EQ(job.verdict(2).kind, VerdictKind::kNodeLost);
  EXPECT_EQ(job.verdict(2).node_rank, 0);
}

TEST(JobState, ReconnectWhileForming_OldSessionIsClosed) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  job.join(2, node_of(job.spec, "a"));
  EXPECT_EQ(job.refusal(1).code(), ErrorCode::kStale);
  job.state.lost(1, "vanished", job.now);  // the old stream ends at last: no harm
  job.join(3, node_of(job.spec, "b"));
  EXPECT_EQ(job.state.phase(), JobState::Phase::kRunning);
}

TEST(JobState, NextDeadline_IsNeverInThePastAfterAdvance) {
  Job job(job_of({"a", "b"}));
  job.join(1, node_of(job.spec, "a"));
  for (int i = 0; i < 100; ++i) {
    job.state.beat(1, job.now);
    ASSERT_GT(job.state.next_deadline(), job.now);
    ASSERT_LE(job.state.next_deadline(), job.now + 500ms);
    job.now = job.state.next_deadline();
    job.state.advance(job.now);
  }
}

TEST(Describe, Signal_IsNamed) {
  RankExit exit;
  exit.rank = 5;
  exit.local_rank = 1;
  exit.node_rank = 2;
  exit.signal = SIGSEGV;
  exit.ran_for = 61'234ms;
  exit.note = "core dumped";
  EXPECT_EQ(describe(exit, "10.0.0.3"),
            "rank 5 (local rank 1) on node 2 (10.0.0.3) was killed by SIGSEGV after 61.2 s (core "
            "dumped)");
}

}  // namespace
}  // namespace fleet
