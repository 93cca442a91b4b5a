// Ranks as processes: what the others see when one is killed or hangs, and what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <set>

#include "tests/comm/file_store.h"
#include "tests/places.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A bound against hanging; the timeout of the ranks is far longer where a death is to be noticed.
constexpr std::chrono::seconds kBound{40};

std::set<std::string> shared_memory_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

struct Job {
  std::string backend;
  std::vector<std::string> nodes;
};

class Ranks {
 public:
  Ranks(const Job& job, int timeout_ms) : before_(shared_memory_files()) {
    char folder[] = "/tmp/comm_failure_XXXXXX";
    if (!::mkdtemp(folder)) throw_errno("cannot make a folder");
    folder_ = folder;
    store_ = std::make_unique<FileStore>(folder_);
    for (size_t rank = 0; rank < job.nodes.size(); ++rank) {
      std::vector<std::string> words = {program_folder() + "/comm_test_rank", folder_,
                                        std::to_string(rank), job.backend,
                                        std::to_string(timeout_ms)};
      words.insert(words.end(), job.nodes.begin(), job.nodes.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      pid_t pid = 0;
      if (::posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
        throw_errno("cannot start", arguments[0]);
      }
      pids_.push_back(pid);
    }
    for (int rank = 0; rank < size(); ++rank) store_->get("begun" + std::to_string(rank), kBound);
  }
  ~Ranks() {
    for (int rank = 0; rank < size(); ++rank) {
      send(rank, SIGKILL);
      reap(rank);
    }
    EXPECT_EQ(shared_memory_files(), before_);
    std::filesystem::remove_all(folder_);
  }
  int size() const { return static_cast<int>(pids_.size()); }
  void send(int rank, int signal) {
    if (pids_[rank] > 0) ::kill(pids_[rank], signal);
  }
  void reap(int rank) {
    if (pids_[rank] > 0) ::waitpid(pids_[rank], nullptr, 0);
    pids_[rank] = -1;
  }
  // What the rank failed with.
  std::string end_of(int rank) { return store_->get("end" + std::to_string(rank), kBound); }

 private:
  const std::set<std::string> before_;
  std::string folder_;
  std::unique_ptr<FileStore> store_;
  std::vector<pid_t> pids_;
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
    Ranks ranks(GetParam(), 1000);
    ranks.send(victim, SIGSTOP);
    const std::string expected =
        "timeout: communicator: rank " + std::to_string(victim) + " did not come within 1 s";
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
