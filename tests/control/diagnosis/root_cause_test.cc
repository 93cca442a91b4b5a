#include "diagnosis/root_cause.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

struct RootCauseTest : ::testing::Test {
  // On `node`, so long after `start` by its clock, known to within `error`; heard of `delay` later.
  void fails(int rank, int node, int code, int signal, nanoseconds at, nanoseconds error = 100us,
             nanoseconds delay = 1ms) {
    RankExit exit;
    exit.set_rank(rank);
    exit.set_node_rank(node);
    exit.set_code(code);
    exit.set_signal(signal);
    exit.set_at_ns((start + at).time_since_epoch().count());
    exit.set_at_error_ns(error.count());
    analyzer.on_rank_failed(exit, start + at + delay, start + at + delay);
  }
  int cause_rank() {
    const std::optional<RankExit> cause = analyzer.decide();
    return cause ? cause->rank() : -1;
  }
  RootCauseAnalyzer analyzer;
  RootCauseAnalyzer::Time start = RootCauseAnalyzer::Time() + 1000s;
};

TEST_F(RootCauseTest, Nothing_IsNeverDue) {
  EXPECT_FALSE(analyzer.any());
  EXPECT_EQ(analyzer.due(), RootCauseAnalyzer::Time::max());
}

// Thousands of ranks may fail for the loss of one, each with the end of its log.
TEST_F(RootCauseTest, WhatEndedLaterForCertain_IsNotKept) {
  fails(0, 0, 1, 0, 0ms);
  for (int rank = 1; rank < 100; ++rank) fails(rank, 1, 1, 0, 50ms);
  for (int rank = 100; rank < 200; ++rank) fails(rank, 1, kExitPeerLost, 0, 0ms);
  EXPECT_EQ(analyzer.kept(), 1u);
  fails(200, 2, 0, SIGKILL, 50ms);  // noticed late, perhaps
  EXPECT_EQ(analyzer.kept(), 2u);
  EXPECT_EQ(cause_rank(), 200);
  fails(1, 1, 1, 0, 50ms);  // forgotten with the rest
  EXPECT_EQ(cause_rank(), 1);
}

TEST_F(RootCauseTest, OneFailure_IsDueAfterTheWindow) {
  fails(3, 1, 7, 0, 0s);
  EXPECT_EQ(analyzer.due(), start + 1ms + 250ms);
  fails(2, 1, 7, 0, 100ms);  // does not put it off
  EXPECT_EQ(analyzer.due(), start + 1ms + 250ms);
  EXPECT_EQ(cause_rank(), 3);
  EXPECT_FALSE(analyzer.any());
}

TEST_F(RootCauseTest, CascadeFromAnotherNodeThatIsHeardFirst_IsNotTheCause) {
  fails(0, 0, 1, 0, 60ms, 100us, 0ms);
  fails(3, 1, 7, 0, 10ms, 1ms, 200ms);
  EXPECT_EQ(cause_rank(), 3);
}

TEST_F(RootCauseTest, TooCloseToTell_TheOneThatWasKilledIsTheCause) {
  fails(0, 0, 1, 0, 10ms);
  fails(1, 0, 0, SIGABRT, 11ms);
  fails(3, 1, 0, SIGKILL, 12ms);
  EXPECT_EQ(cause_rank(), 3);
}

TEST_F(RootCauseTest, CertainlyEarlierExit_IsTheCauseOfALaterKill) {
  fails(0, 0, 1, 0, 10ms);
  fails(3, 1, 0, SIGSEGV, 100ms);
  EXPECT_EQ(cause_rank(), 0);
}

TEST_F(RootCauseTest, KillThatWasNoticedLate_IsTheCauseOfWhatFollowed) {
  fails(0, 0, 1, 0, 10ms);
  fails(3, 1, 0, SIGKILL, 100ms);
  EXPECT_EQ(cause_rank(), 3);
}

TEST_F(RootCauseTest, UnknownClock_IsTooCloseToTell) {
  RankExit exit;
  exit.set_rank(0);
  exit.set_code(1);
  analyzer.on_rank_failed(exit, start, start);
  fails(3, 1, 0, SIGKILL, -20ms, 1ms, 40ms);
  EXPECT_EQ(cause_rank(), 3);
}

TEST_F(RootCauseTest, RankThatSaysItLostAnother_IsTheCauseOnlyAlone) {
  fails(0, 0, kExitPeerLost, 0, 0s);
  EXPECT_EQ(analyzer.due(), start + 1ms + 500ms);
  fails(3, 1, 5, 0, 300ms);
  EXPECT_EQ(cause_rank(), 3);
  fails(1, 0, kExitPeerLost, 0, 50ms);
  fails(2, 1, kExitPeerLost, 0, 1ms);
  EXPECT_EQ(cause_rank(), 2);
}

TEST_F(RootCauseTest, LostNode_ExplainsWhatOthersReport) {
  fails(0, 0, 1, 0, 0s);
  analyzer.on_node_lost(2, start + 30ms);
  EXPECT_LE(analyzer.due(), start);
  EXPECT_FALSE(analyzer.decide());
}

TEST_F(RootCauseTest, FailureLongBeforeANodeWasLost_IsTheCause) {
  fails(0, 0, 1, 0, 0s);
  analyzer.on_node_lost(2, start + 200ms);
  EXPECT_EQ(cause_rank(), 0);
}

TEST_F(RootCauseTest, WhatALostNodeHasReportedItself_CameBefore) {
  fails(4, 2, 0, SIGKILL, 0s);
  analyzer.on_node_lost(2, start + 5ms);
  EXPECT_EQ(cause_rank(), 4);
}

TEST_F(RootCauseTest, SilentNode_IsLostSinceItWasLastHeard) {
  fails(0, 0, 1, 0, 2s);
  analyzer.on_node_lost(2, start + 1s);
  EXPECT_EQ(cause_rank(), -1);
}

// A rank that is stopped makes others fail, whose nodes may report first.
TEST_F(RootCauseTest, WhatFollowsFromAStop_IsNoCause) {
  const auto stopped = [this](nanoseconds at, nanoseconds error) {
    analyzer.on_stop((start + at).time_since_epoch().count(), error.count());
  };
  fails(3, 1, 1, 0, 50ms);
  stopped(48ms, 1ms);
  EXPECT_FALSE(analyzer.any());
  EXPECT_EQ(analyzer.due(), RootCauseAnalyzer::Time::max());
  fails(3, 1, 7, 0, 10ms);  // it failed before, whoever stopped the job for it
  fails(2, 0, 1, 0, 49ms);
  stopped(48ms, 1ms);
  EXPECT_EQ(cause_rank(), 3);
  analyzer.on_node_lost(1, start);
  stopped(0ms, 1ms);
  EXPECT_TRUE(analyzer.any());
}

// However the reports are shuffled and delayed, and whatever the clocks' errors within their
// bounds.
TEST_F(RootCauseTest, AnyOrderOfArrival_GivesTheSameCause) {
  struct Report {
    int rank, node, code, signal;
    nanoseconds at;
  };
  std::vector<Report> reports = {
      {5, 2, 0, SIGKILL, 0ms}, {0, 0, 1, 0, 1ms}, {1, 0, 1, 0, 3ms}, {7, 3, 0, SIGABRT, 6ms}};
  std::sort(reports.begin(), reports.end(),
            [](const Report& a, const Report& b) { return a.rank < b.rank; });
  do {
    nanoseconds delay = 10ms;
    for (const Report& one : reports) {
      fails(one.rank, one.node, one.code, one.signal, one.at, 2ms, delay += 10ms);
    }
    EXPECT_EQ(cause_rank(), 5);
  } while (std::next_permutation(reports.begin(), reports.end(),
                                 [](const Report& a, const Report& b) { return a.rank < b.rank; }));
}

}  // namespace
}  // namespace fleet
