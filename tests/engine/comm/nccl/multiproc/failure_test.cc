// Ranks on (emulated) GPUs as processes whose collectives hang, as a GPU's do where a rank is gone:
// what the others see when one is killed or stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/comm/rank_processes.h"

namespace fleet {
namespace {

using testing::StartsWith;

const std::vector<std::string> kNodes = {"127.0.0.1", "127.0.0.1", "127.0.0.2"};

TEST(NcclFailure, KilledRank_IsNamedToAllOthersWithin5Seconds) {
  for (int victim = 0; victim < 3; ++victim) {
    RankProcesses ranks("nccl_emulated_rank", "sum", 600000, kNodes);
    ranks.wait_until_begun();
    ranks.send(victim, SIGKILL);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(ranks.end_of(rank, std::chrono::seconds(5)),
                  StartsWith("peer lost: communicator: rank " + std::to_string(victim) + " "))
          << "as rank " << rank << " sees it";
    }
  }
}

TEST(NcclFailure, StoppedRank_IsNamedAfterTheTimeout) {
  RankProcesses ranks("nccl_emulated_rank", "sum", 1000, kNodes);
  ranks.wait_until_begun();
  ranks.send(1, SIGSTOP);
  for (int rank : {0, 2}) {
    EXPECT_THAT(ranks.end_of(rank), StartsWith("timeout: communicator: rank 1"));
  }
}

}  // namespace
}  // namespace fleet
