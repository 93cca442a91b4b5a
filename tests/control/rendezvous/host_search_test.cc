#include "rendezvous/host_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fleet {
namespace {

using namespace std::chrono_literals;
using Action = HostSearch::Step::Action;
using Time = HostSearch::Time;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kTurn = 8s, kGiveUp = 60s;

HostSearchSettings of_node(int self, int nodes, bool may_host = true) {
  HostSearchSettings settings;
  settings.can_host.assign(static_cast<size_t>(nodes), true);
  settings.can_host[0] = false;  // the node that hosted the job from its start has no other port
  settings.self = self;
  settings.may_host = may_host;
  settings.turn = kTurn;
  settings.give_up = kGiveUp;
  return settings;
}

// A search whose clock is a number.
struct Search {
  explicit Search(const HostSearchSettings& settings) : search(settings, now) {}
  // The first step within this time.
  HostSearch::Step within(std::chrono::milliseconds time) {
    for (const Time end = now + time; now < end;) {
      const HostSearch::Step step = search.on_time(now);
      if (step.action != Action::kNone) return step;
      for (const int node : search.take_questions(now)) {
        ++asked[node];
        search.on_answer(node, HostAnswer::kNone, now);
      }
      now = std::min(end, std::max(search.due(now), now + 1ms));
    }
    return search.on_time(now);
  }
  HostSearch::Step answer(int node, HostAnswer answer) {
    return search.on_answer(node, answer, now);
  }
  Time now{};
  HostSearch search;
  std::map<int, int> asked;
};

TEST(HostSearch, FirstAfterTheHost_HostsAtOnce) {
  Search first(of_node(1, 4));
  const auto step = first.search.on_time(first.now);
  EXPECT_EQ(step.action, Action::kHost);
  EXPECT_EQ(step.node, 1);
  EXPECT_TRUE(first.search.hosts());
}

TEST(HostSearch, LaterNode_WaitsForItsTurn) {
  Search third(of_node(3, 4));
  EXPECT_EQ(third.within(2 * kTurn - 1s).action, Action::kNone);
  EXPECT_EQ(third.within(2s).action, Action::kHost);
}

TEST(HostSearch, NodesThatCannotHost_HaveNoTurn) {
  HostSearchSettings settings = of_node(3, 4);
  settings.can_host[1] = settings.can_host[2] = false;
  Search next(settings);
  EXPECT_THAT(next.search.take_questions(next.now), ElementsAre(0));
  EXPECT_EQ(next.search.on_time(next.now).action, Action::kHost);
}

TEST(HostSearch, ThoseWhoMayNotHost_AskUntilTheyGiveUp) {
  Search spare(of_node(-1, 4)), unsure(of_node(1, 4, false));
  for (Search* one : {&spare, &unsure}) {
    EXPECT_EQ(one->within(kGiveUp - 1s).action, Action::kNone);
    EXPECT_EQ(one->within(2s).action, Action::kGiveUp);
  }
  EXPECT_EQ(spare.asked.size(), 4u);
}

// The old host included, again and again.
TEST(HostSearch, AsksAllOthersEverySecond_AndTheOneWhoseTurnItIsMoreOften) {
  Search third(of_node(3, 4));
  third.within(kTurn - 1s);
  EXPECT_EQ(third.asked.count(3), 0u);
  for (const int node : {0, 2}) EXPECT_NEAR(third.asked[node], 7, 1) << node;
  EXPECT_NEAR(third.asked[1], 70, 7);
}

TEST(HostSearch, LargeWorld_AsksAFewNodes) {
  Search last(of_node(12'499, 12'500));
  const auto asked = last.search.take_questions(last.now);
  EXPECT_LE(asked.size(), 17u);
  EXPECT_TRUE(std::set<int>(asked.begin(), asked.end()).contains(0));
}

TEST(HostSearch, QuestionWithoutAnswer_IsAskedOnce) {
  Search second(of_node(2, 3));
  EXPECT_EQ(second.search.take_questions(second.now).size(), 2u);
  EXPECT_THAT(second.search.take_questions(second.now + 3s), IsEmpty());
}

// The link of this node comes back.
TEST(HostSearch, HostThatContinues_IsJoinedEvenByANodeThatHosts) {
  Search alone(of_node(1, 2));
  EXPECT_EQ(alone.search.on_time(alone.now).action, Action::kHost);
  EXPECT_EQ(alone.within(40s).action, Action::kNone);
  EXPECT_GT(alone.asked[0], 30);
  const auto step = alone.answer(0, HostAnswer::kContinues);
  EXPECT_EQ(step.action, Action::kJoin);
  EXPECT_EQ(step.node, 0);
  EXPECT_FALSE(alone.search.hosts());
}

TEST(HostSearch, HostThatWaits_IsJoinedByThoseWhoAskAndByLaterHosts) {
  Search asks(of_node(2, 4));
  EXPECT_EQ(asks.answer(3, HostAnswer::kWaits).action, Action::kJoin);
  Search hosts(of_node(2, 4));
  EXPECT_EQ(hosts.within(kTurn).action, Action::kHost);
  EXPECT_EQ(hosts.answer(3, HostAnswer::kWaits).action, Action::kNone);
  EXPECT_EQ(hosts.answer(1, HostAnswer::kWaits).action, Action::kJoin);
}

// Two hosts that find each other: one of them yields, not both and not neither.
TEST(HostSearch, OfTwoHosts_OneYields) {
  for (int one = 1; one < 5; ++one) {
    for (int other = 1; other < 5; ++other) {
      if (one == other) continue;
      int yield = 0;
      for (const auto& [self, peer] : {std::pair(one, other), std::pair(other, one)}) {
        Search search(of_node(self, 5));
        EXPECT_EQ(search.within(4 * kTurn).action, Action::kHost);
        yield += search.answer(peer, HostAnswer::kWaits).action == Action::kJoin;
      }
      EXPECT_EQ(yield, 1) << one << " " << other;
    }
  }
}

TEST(HostSearch, JoinedHostDoesNotAnswer_IsLeftAndTheSearchGoesOn) {
  Search search(of_node(2, 3));
  EXPECT_EQ(search.answer(1, HostAnswer::kWaits).action, Action::kJoin);
  EXPECT_THAT(search.search.take_questions(search.now), IsEmpty());
  EXPECT_EQ(search.within(10s).action, Action::kLeave);
  EXPECT_EQ(search.within(kTurn).action, Action::kHost);
}

TEST(HostSearch, HostThatRefuses_DoesNotProlongTheSearch) {
  Search search(of_node(-1, 3));
  while (search.now < Time(kGiveUp - 1s)) {
    search.within(1s);
    search.answer(0, HostAnswer::kContinues);
    search.search.on_host_gone(search.now);
  }
  EXPECT_EQ(search.within(2s).action, Action::kGiveUp);
}

// It decided meanwhile, perhaps for longer than this node would have looked for it.
TEST(HostSearch, HostThatHadAdmittedThisNodeIsGone_TheTimeBeginsAgain) {
  Search search(of_node(-1, 3));
  search.answer(0, HostAnswer::kContinues);
  search.search.on_admitted();
  EXPECT_EQ(search.within(2 * kGiveUp).action, Action::kNone);
  search.search.on_host_gone(search.now);
  EXPECT_EQ(search.within(kGiveUp - 1s).action, Action::kNone);
  EXPECT_EQ(search.within(2s).action, Action::kGiveUp);
}

TEST(HostSearch, TimeInWhichThisProcessWasSuspended_DoesNotCount) {
  Search search(of_node(2, 3));
  search.within(1s);
  search.now += 10 * kGiveUp;
  EXPECT_EQ(search.within(kTurn / 2).action, Action::kNone);
  EXPECT_EQ(search.within(kTurn / 2).action, Action::kHost);
}

}  // namespace
}  // namespace fleet
