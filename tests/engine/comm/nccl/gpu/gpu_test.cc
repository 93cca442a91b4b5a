// Ranks on one GPU, over the real NCCL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/plugin.h"
#include "comm/factory.h"
#include "exec/backend.h"
#include "tests/engine/comm/rank_processes.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using testing::StartsWith;

// Needs NCCL, but no GPU.
TEST(NcclModule, Loaded_RegistersItsBackend) {
  if (!has_plugin("nccl")) GTEST_SKIP() << "this build has no NCCL";
  EXPECT_EQ(load_plugin("fleet_nccl", "NCCL"), "");
  EXPECT_TRUE(comm_backends().find("nccl"));
}

class NcclOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_plugin("nccl")) GTEST_SKIP() << "this build has no NCCL";
    const DeviceChoice choice = choose_device("cuda", 0);
    if (choice.device->backend() != "cuda") GTEST_SKIP() << choice.note;
  }
};

void check_with(const std::vector<std::string>& nodes) {
  RankProcesses ranks("nccl_gpu_rank", "check", 60000, nodes);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks.end_of(rank, std::chrono::seconds(100)), "ok") << "rank " << rank;
  }
}

TEST_F(NcclOnGpu, OneRank_DoesEverything) { check_with({"127.0.0.1"}); }
TEST_F(NcclOnGpu, TwoRanks_DoEverything) { check_with({"127.0.0.1", "127.0.0.2"}); }
TEST_F(NcclOnGpu, FourRanks_DoEverything) {
  check_with({"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"});
}

TEST_F(NcclOnGpu, KilledRank_IsNamedToTheOthersWithin5Seconds) {
  RankProcesses ranks("nccl_gpu_rank", "sum", 600000, {"127.0.0.1", "127.0.0.1", "127.0.0.2"});
  ranks.wait_until_begun();
  ranks.send(1, SIGKILL);
  for (int rank : {0, 2}) {
    EXPECT_THAT(ranks.end_of(rank, std::chrono::seconds(5)),
                StartsWith("peer lost: communicator: rank 1 "));
  }
}

TEST_F(NcclOnGpu, StoppedRank_IsNamedAfterTheTimeout) {
  RankProcesses ranks("nccl_gpu_rank", "sum", 3000, {"127.0.0.1", "127.0.0.1", "127.0.0.2"});
  ranks.wait_until_begun();
  ranks.send(1, SIGSTOP);
  for (int rank : {0, 2}) {
    EXPECT_THAT(ranks.end_of(rank), StartsWith("timeout: communicator: rank 1"));
  }
}

}  // namespace
}  // namespace fleet
