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

}  // namespace
}  // namespace fleet
