// Ranks as processes: what the others see when one is killed or hangs, and what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "base/file.h"
#include "tests/engine/comm/rank_processes.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Job {
  std::string backend;
  std::vector<std::string> nodes;
};

// Ranks that could leave nothing in shared memory: none has mapped a file that has a name there.
class Ranks : public RankProcesses {
 public:
  Ranks(const Job& job, int timeout_ms)
      : RankProcesses("comm_test_rank", job.backend, timeout_ms, job.nodes) {
    wait_until_begun();
    for (int rank = 0; rank < size(); ++rank) {
      EXPECT_THAT(read_file("/proc/" + std::to_string(pid(rank)) + "/maps"),
                  Not(HasSubstr("/dev/shm/")));
    }
  }
};

class Failure : public testing::TestWithParam<Job> {};

TEST_P(Failure, KilledRank_IsNamedToAllOthers) {
  for (int victim = 0; victim < static_cast<int>(GetParam().nodes.size()); ++victim) {
    Ranks ranks(GetParam(), 600000);
    ranks.send(victim, SIGKILL);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(ranks.end_of(rank),
                  StartsWith("peer lost: communicator: rank " + std::to_string(victim) + " "))
          << "as rank " << rank << " sees it";
    }
  }
}

TEST_P(Failure, StoppedRank_IsNamedAfterTheTimeoutAndFailsItself) {
  for (int victim = 0; victim < static_cast<int>(GetParam().nodes.size()); ++victim) {
    Ranks ranks(GetParam(), 2000);
    ranks.send(victim, SIGSTOP);
    const std::string expected =
        "timeout: communicator: rank " + std::to_string(victim) + " did not arrive within 2 s";
    for (int rank = 0; rank < ranks.size(); ++rank) {
      if (rank == victim) continue;
      EXPECT_THAT(ranks.end_of(rank), StartsWith(expected)) << "as rank " << rank << " sees it";
    }
    ranks.send(victim, SIGCONT);
    EXPECT_THAT(ranks.end_of(victim), HasSubstr("communicator: rank"));
  }
}

TEST_P(Failure, AllKilledAtOnce_LeaveNothingInSharedMemory) {
  Ranks ranks(GetParam(), 600000);
  for (int rank = 0; rank < ranks.size(); ++rank) ranks.send(rank, SIGKILL);
}  // ~Ranks looks

INSTANTIATE_TEST_SUITE_P(
    Backends, Failure,
    testing::Values(Job{"shm", {"a", "a", "a"}},
                    Job{"gloo", {"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
                    Job{"hierarchical", {"127.0.0.1", "127.0.0.1", "127.0.0.2", "127.0.0.2"}},
                    Job{"hierarchical", {"127.0.0.2", "127.0.0.1", "127.0.0.1"}}),
    [](const auto& info) { return info.param.backend + std::to_string(info.param.nodes.size()); });

}  // namespace
}  // namespace fleet
