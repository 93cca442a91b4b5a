#include "rendezvous/election.h"

#include <gtest/gtest.h>

namespace fleet {
namespace {

TEST(Quorum, MoreThanHalf_OrHalfWithTheHost) {
  EXPECT_TRUE(has_quorum(1, {0}));
  EXPECT_TRUE(has_quorum(2, {0}));
  EXPECT_FALSE(has_quorum(2, {1}));
  EXPECT_TRUE(has_quorum(3, {1, 2}));
  EXPECT_FALSE(has_quorum(3, {0}));
  EXPECT_TRUE(has_quorum(4, {0, 3}));
  EXPECT_FALSE(has_quorum(4, {1, 2}));
  EXPECT_FALSE(has_quorum(5, {0, 1}));
  EXPECT_TRUE(has_quorum(5, {2, 3, 4}));
  EXPECT_FALSE(has_quorum(3, {}));
}

// However the nodes are divided, at most one part continues.
TEST(Quorum, OfTwoParts_NeverBoth) {
  for (int nodes = 1; nodes <= 10; ++nodes) {
    for (int cut = 0; cut < 1 << nodes; ++cut) {
      std::set<int> here, there;
      for (int node = 0; node < nodes; ++node) (cut >> node & 1 ? here : there).insert(node);
      EXPECT_FALSE(has_quorum(nodes, here) && has_quorum(nodes, there)) << nodes << " " << cut;
    }
  }
}

using namespace std::chrono_literals;
using Action = FailoverSearch::Step::Action;

TEST(FailoverSearch, InOrder_UntilOnesOwnTurn) {
  const FailoverSearch::Time now{};
  FailoverSearch third({true, true, true, true}, 0, 2, 4s, now);
  EXPECT_EQ(third.step().action, Action::kTry);
  EXPECT_EQ(third.step().node, 1);
  EXPECT_EQ(third.deadline(), now + 4s);
  EXPECT_EQ(third.next(now + 4s).action, Action::kHost);
  EXPECT_EQ(third.next(now + 8s).node, 3);
  EXPECT_EQ(third.next(now + 12s).action, Action::kGiveUp);
}

TEST(FailoverSearch, NodesThatCannotHost_AreSkipped) {
  FailoverSearch last({true, false, false, true}, 0, 2, 4s, {});
  EXPECT_EQ(last.step().node, 3);
  FailoverSearch none({true, false}, 0, 1, 4s, {});
  EXPECT_EQ(none.step().action, Action::kGiveUp);
}

TEST(FailoverSearch, SecondLoss_GoesOnBehindIt) {
  FailoverSearch next({true, true, true}, 1, 2, 4s, {});
  EXPECT_EQ(next.step().action, Action::kHost);
}

TEST(FailoverSearch, Spare_NeverHosts) {
  FailoverSearch spare({true, true}, 0, -1, 4s, {});
  EXPECT_EQ(spare.step().action, Action::kTry);
  EXPECT_EQ(spare.next({}).action, Action::kGiveUp);
}

}  // namespace
}  // namespace fleet
