#include <gtest/gtest.h>

#include <vector>

#include "train/checkpoint_policy.h"

namespace fleet {
namespace {

// Two ranks and their turns, 1 ms each. Signals come before the turns given.
struct Ranks {
  int saves = 0;
  void run(std::vector<int> first, std::vector<int> second, int turns) {
    CheckpointRequests ranks[2];
    int came[2] = {0, 0};
    bool before = false;  // what was asked for in the turn before
    for (int turn = 0; turn < turns; ++turn) {
      const double now = turn * 0.001;
      for (const int at : first) came[0] += at == turn;
      for (const int at : second) came[1] += at == turn;
      const bool one = ranks[0].is_new(came[0], now), two = ranks[1].is_new(came[1], now);
      const bool saved = ranks[0].agree(before, now);
      EXPECT_EQ(ranks[1].agree(before, now), saved) << turn;
      saves += saved;
      before = one || two;
    }
  }
};

TEST(CheckpointRequests, SignalThatRanksNoticeApart_IsOneRequest) {
  for (const int later : {0, 1, 2, 3, 50}) {
    Ranks ranks;
    ranks.run({10}, {10 + later}, 100);
    EXPECT_EQ(ranks.saves, 1) << later;
  }
}

TEST(CheckpointRequests, SecondSignal_IsAnother) {
  Ranks ranks;
  ranks.run({10, 40}, {11, 42}, 100);
  EXPECT_EQ(ranks.saves, 2);
}

// Where a rank had no core for a while: it notices the first one when the second one comes.
TEST(CheckpointRequests, SecondSignalRightAfterTheFirstSave_IsAnother) {
  Ranks ranks;
  ranks.run({10, 12}, {11, 13}, 100);
  EXPECT_EQ(ranks.saves, 2);
}

TEST(CheckpointRequests, SignalsToOneRankAndThenToTheOther_AllCount) {
  Ranks ranks;
  ranks.run({10, 1200}, {3000}, 4000);
  EXPECT_EQ(ranks.saves, 3);
}

}  // namespace
}  // namespace fleet
