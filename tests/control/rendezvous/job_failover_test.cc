// Loss of a job's host: the nodes that continue, and their state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/election.h"
#include "tests/control/rendezvous/restarted_job.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Job = RestartedJob;
using Phase = JobState::Phase;

FailoverState from_world(SharedWorld base, SharedWorld before = {}) {
  FailoverState from;
  from.base = std::move(base);
  from.before = std::move(before);
  from.how = "the host was lost";
  return from;
}

// Session 1 is node a, and so on.
std::string address_of(SessionId session) {
  return std::string(1, static_cast<char>('a' + session - 1));
}

// The Join of a node that has lost its host.
wire::Join survivor(const JobSpec& spec, SessionId session, const SharedWorld& last,
                    const SharedWorld& committed, bool hosts = false) {
  wire::Join info = node_of(spec, address_of(session), 2, hosts);
  *info.mutable_last() = last->id();
  *info.mutable_committed() = committed->id();
  return info;
}

// A job of five whose first generation is over and whose second world was sent.
struct Agreeing : testing::Test {
  Agreeing() {
    job.join_all(5);
    first = job.events_for<Assignment>(1).back().world;
    job.fail(2);
    job.all_ready();
    second = job.events_for<Assignment>(1).back().world;
  }
  // The host is lost: these nodes join the first of them, which continues from `base`.
  Job fail_over(const std::vector<SessionId>& nodes, const SharedWorld& base,
                const SharedWorld& before = {}, SessionId knows = 0) {
    Job next(job.spec, from_world(base, before), job.now);
    for (const SessionId node : nodes) {
      const bool committed = !before.get() || node == knows;
      next.join(node,
                survivor(job.spec, node, base, committed ? base : before, node == nodes.front()));
    }
    next.after(10s);
    return next;
  }
  Job job{elastic(1, 5)};
  SharedWorld first, second;
};

// For every way to cut five nodes in two when their host's link breaks, at most one part continues.
// One part stays with the host; in the other the lowest rank takes over.
TEST(JobFailover, FiveNodesCutInTwo_AtMostOnePartGoesOn) {
  for (int cut = 1; cut < 1 << 4; ++cut) {
    Job job(elastic(1, 5));
    job.join_all(5);
    const SharedWorld base = job.events_for<Assignment>(1).back().world;
    Job next(job.spec, from_world(base), job.now);
    for (SessionId node = 2; node <= 5; ++node) {
      if ((cut >> (node - 2) & 1) == 0) continue;
      next.join(node, survivor(job.spec, node, base, base, next.alive.empty()));
    }
    next.after(10s);
    next.restart();
    for (const SessionId id : next.alive) job.lose(id);
    job.restart();
    const bool near_runs = job.state.phase() == Phase::kRunning;
    const bool far_runs = next.state.phase() == Phase::kRunning;
    EXPECT_NE(near_runs, far_runs) << cut;  // of five one part is always the majority
    if (far_runs) {
      EXPECT_EQ(next.state.generation(), 2);
    }
  }
}

// Some have accepted the second world and some have not heard of it: whoever has the majority goes
// on, from what it knows.
TEST_F(Agreeing, HostLostBeforeTheStart_ThePartWithTheMajorityGoesOn) {
  for (int heard = 0; heard < 1 << 4; ++heard) {
    std::vector<SessionId> notified, others;
    for (SessionId node = 2; node <= 5; ++node) {
      (heard >> (node - 2) & 1 ? notified : others).push_back(node);
    }
    bool old_runs = false, new_runs = false;
    if (!notified.empty()) {
      Job next = fail_over(notified, second, first);
      next.restart();
      new_runs = next.state.phase() == Phase::kRunning;
      if (new_runs) {
        EXPECT_EQ(next.state.generation(), 3);
      }
    }
    if (!others.empty()) {
      Job next = fail_over(others, first);
      next.restart();
      old_runs = next.state.phase() == Phase::kRunning;
    }
    EXPECT_EQ(new_runs, notified.size() >= 3) << heard;
    EXPECT_EQ(old_runs, others.size() >= 3) << heard;
  }
}

// The second world has one node of the first, and newcomers: they cannot know whether it counts.
TEST(JobFailover, MajorityOfTheNewWorldWithoutOneOfTheOld_Ends) {
  Job job(elastic(1, 5));
  job.join_all(3);
  job.after(31s);
  const SharedWorld first = job.events_for<Assignment>(1).back().world;
  for (SessionId node = 4; node <= 5; ++node) job.join(node, address_of(node));
  job.after(31s);
  job.all_ready();
  const SharedWorld second = job.events_for<Assignment>(1).back().world;
  ASSERT_EQ(second->nodes_size(), 5);
  for (const SessionId know : {0, 2}) {  // nobody, or b, has heard the Start
    Job next(job.spec, from_world(second, first), job.now);
    for (const SessionId node : {2, 4, 5}) {
      wire::Join info = survivor(job.spec, node, second, node == know ? second : first, node == 2);
      if (node > 3) info.clear_committed();
      next.join(node, info);
    }
    next.after(40s);
    EXPECT_EQ(next.state.phase(), know == 0 ? Phase::kEnded : Phase::kStopping);
  }
}

TEST_F(Agreeing, NodeOfAnotherWorld_HasNoVote) {
  Job next(job.spec, from_world(first), job.now);
  next.join(2, survivor(job.spec, 2, first, first, true));
  wire::Join other = survivor(job.spec, 3, first, first);
  other.mutable_last()->set_leader("somebody else");
  next.join(3, other);
  EXPECT_EQ(next.refusal(3).code(), ErrorCode::kStale);
  EXPECT_EQ(next.state.joined(), 1);
  next.after(31s);
  EXPECT_EQ(next.state.phase(), Phase::kEnded);
}

// Others may notice the loss later than the node that takes over, however short the wait.
TEST(JobFailover, ShortWait_IsLongEnoughForOthersToSeeTheLoss) {
  ASSERT_EQ(notice_time(JobTimes().max_silence), 2500ms);
  JobSpec spec = elastic(1, 5);
  spec.restarts.elastic_timeout = 100ms;
  Job job(spec);
  job.join_all(5);
  const SharedWorld base = job.events_for<Assignment>(1).back().world;
  for (const SessionId last : {3, 4}) {
    Job next(spec, from_world(base), job.now);
    for (SessionId node = 2; node <= last; ++node) {
      next.join(node, survivor(spec, node, base, base, node == 2));
      next.after(800ms);
      EXPECT_EQ(next.state.phase(), Phase::kFailingOver);
    }
    next.after(5s);
    EXPECT_EQ(next.state.phase(), last == 4 ? Phase::kStopping : Phase::kEnded);
  }
}

// Their links come back one after the other, that of the old host too.
TEST(JobFailover, NodesThatMeetLater_GoOn) {
  Job job(elastic(2, 4));
  job.join_all(4);
  const SharedWorld base = job.events_for<Assignment>(1).back().world;
  Job next(job.spec, from_world(base), job.now);
  next.join(2, survivor(job.spec, 2, base, base, true));
  next.after(20s);
  EXPECT_EQ(next.state.phase(), Phase::kFailingOver);
  next.join(1, survivor(job.spec, 1, base, base));
  EXPECT_EQ(next.state.phase(), Phase::kStopping);
  next.join(3, survivor(job.spec, 3, base, base));
  next.restart();
  EXPECT_EQ(next.state.phase(), Phase::kRunning);
  EXPECT_THAT(next.addresses(2), SizeIs(3));
}

// Of two nodes whose link is down, only the one with the host goes on; the other takes part again
// when the link is back, or ends.
TEST(JobFailover, TwoHalvesOfTwoNodes_NeverBothGoOn) {
  Job near(elastic(1, 2));
  near.join_all(2);
  const SharedWorld base = near.events_for<Assignment>(1).back().world;
  Job far(near.spec, from_world(base), near.now);
  far.join(2, survivor(near.spec, 2, base, base, true));
  near.lose(2);
  near.restart();
  EXPECT_EQ(near.state.phase(), Phase::kRunning);
  far.after(29s);
  EXPECT_EQ(far.state.phase(), Phase::kFailingOver);
  near.join(3, survivor(near.spec, 2, base, base));
  near.after(31s);
  near.restart();
  EXPECT_THAT(near.addresses(), ElementsAre("a", "b"));
  far.after(2s);
  EXPECT_EQ(far.verdict(2).kind(), Verdict::NODE_LOST);
}

TEST_F(Agreeing, LateSurvivor_WaitsAndIsTakenIn) {
  Job next = fail_over({2, 3, 4}, first);
  next.restart();
  ASSERT_EQ(next.state.phase(), Phase::kRunning);
  next.join(5, survivor(job.spec, 5, second, first));  // even one that has received another world
  ASSERT_THAT(next.events_for<JoinProgress>(5), SizeIs(1));
  EXPECT_THAT(next.events_for<JoinProgress>(5)[0].line(), HasSubstr("restarts with this node"));
  ASSERT_THAT(next.events_for<Assignment>(5), SizeIs(1));
  EXPECT_EQ(next.events_for<Assignment>(5)[0].node_rank, -1);
  next.ready(5);  // of the generation that it was in: nobody has asked for it
  next.after(31s);
  next.restart();
  EXPECT_EQ(next.state.phase(), Phase::kRunning);
  EXPECT_THAT(next.addresses(2), ElementsAre("b", "c", "d", "e"));
}

TEST_F(Agreeing, LateSurvivorWhileTheOthersStop_KeepsItsPlace) {
  Job next = fail_over({2, 3, 4}, first);
  ASSERT_EQ(next.state.phase(), Phase::kStopping);
  next.join(5, survivor(job.spec, 5, first, first));
  EXPECT_TRUE(next.events_for<RestartCommand>(5).empty());  // its ranks are stopped
  next.restart();
  EXPECT_THAT(next.addresses(2), ElementsAre("b", "c", "d", "e"));
}

// The node that left the first generation for another job of the same name has no vote in it
// either.
TEST_F(Agreeing, SurvivorOfAnotherJobsForming_IsRefused) {
  Job fresh(job.spec);
  fresh.join(1, "a", true);
  fresh.join(2, survivor(job.spec, 2, first, first));
  EXPECT_EQ(fresh.refusal(2).code(), ErrorCode::kStale);
}

TEST(JobFailover, StepsOfTheLastGeneration_AreItsProgress) {
  for (const int64_t step : {40, 41}) {
    JobSpec spec = restartable(job_of({"a", "b", "c"}), 50);
    spec.restarts.no_progress_restarts = 2;
    Job job(spec);
    job.join_all(3);
    FailoverState from = from_world(job.events_for<Assignment>(1).back().world);
    for (const int generation : {-1, 0}) {
      GenerationResult& end = from.history.emplace_back();
      end.set_generation(generation);
      end.set_step(40);
      end.set_kind(Verdict::RANK_FAILED);
    }
    from.step = step;
    Job next(spec, from, job.now);
    for (const SessionId node : {2, 3}) {
      next.join(node, survivor(spec, node, from.base, from.base, node == 2));
    }
    if (step > 40) {
      EXPECT_EQ(next.events_for<RestartCommand>(3).at(0).end().step(), step);
    } else {
      EXPECT_EQ(next.verdict(3).kind(), Verdict::NO_PROGRESS);
    }
  }
}

// Only the lost host had --allow_skew.
TEST(JobFailover, SkewThatTheLostHostAllowed_StaysAllowed) {
  JobSpec spec = restartable(job_of({"a", "b", "c"}));
  for (const bool allowed : {true, false}) {
    spec.config.set_allow_skew(allowed);
    Job job(spec);
    job.join_all(3);
    const SharedWorld base = job.events_for<Assignment>(1).back().world;
    JobSpec own = spec;
    own.config.set_allow_skew(false);
    Job next(own, from_world(base), job.now);
    next.join(2, survivor(own, 2, base, base, true));
    wire::Join other = survivor(own, 3, base, base);
    set_values(other.mutable_job()->mutable_fingerprint(), {{"glibc", "2.39"}});
    next.join(3, other);
    EXPECT_EQ(next.state.joined(), allowed ? 2 : 1);
    if (!allowed) {
      EXPECT_EQ(next.refusal(3).code(), ErrorCode::kUsage);
    }
  }
}

TEST_F(Agreeing, Worlds_NameTheOneBeforeAndTheirRun) {
  EXPECT_EQ(second->base(), first->id());
  EXPECT_EQ(first->base(), WorldId{});
  Job next = fail_over({2, 3, 4}, first);
  next.restart();
  const SharedWorld third = next.events_for<Assignment>(2).back().world;
  EXPECT_NE(third->id().leader(), first->id().leader());
  EXPECT_EQ(third->run(),
            first->id().leader());  // whatever a rank calls its own by FLEET_RUN stays so
}

}  // namespace
}  // namespace fleet
