// Ranks as processes of a test.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/comm/file_store.h"
#include "tests/test_paths.h"

namespace fleet {

// A bound against hanging. In tests of deaths, the ranks' own timeout is far longer.
inline constexpr std::chrono::seconds kBound{40};

// Runs PROGRAM FOLDER RANK WORD TIMEOUT_MS NODE... for each rank, a program of the tests that sets
// the keys "begun<rank>" and "end<rank>" of the FileStore in FOLDER. The destructor kills them.
class RankProcesses {
 public:
  RankProcesses(const std::string& program, const std::string& word, int timeout_ms,
                const std::vector<std::string>& nodes) {
    char folder[] = "/tmp/comm_ranks_XXXXXX";
    if (!::mkdtemp(folder)) throw_errno("cannot make a folder");
    folder_ = folder;
    store_ = std::make_unique<FileStore>(folder_);
    for (size_t rank = 0; rank < nodes.size(); ++rank) {
      std::vector<std::string> words = {program_folder() + "/" + program, folder_,
                                        std::to_string(rank), word, std::to_string(timeout_ms)};
      words.insert(words.end(), nodes.begin(), nodes.end());
      start(words);
    }
  }
  ~RankProcesses() {
    end_all();
    std::filesystem::remove_all(folder_);
  }
  int size() const { return static_cast<int>(pids_.size()); }
  pid_t pid(int rank) const { return pids_[rank]; }
  void wait_until_begun() {
    for (int rank = 0; rank < size(); ++rank) store_->get("begun" + std::to_string(rank), kBound);
  }
  void send(int rank, int signal) {
    if (pids_[rank] > 0) ::kill(pids_[rank], signal);
  }
  void reap(int rank) {
    if (pids_[rank] > 0) ::waitpid(pids_[rank], nullptr, 0);
    pids_[rank] = -1;
  }
  void end_all() {
    for (int rank = 0; rank < size(); ++rank) {
      send(rank, SIGKILL);
      reap(rank);
    }
  }
  // The outcome that the rank has written.
  std::string end_of(int rank, std::chrono::milliseconds bound = kBound) {
    return store_->get("end" + std::to_string(rank), bound);
  }

 private:
  void start(std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    if (::posix_spawn(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) {
      throw_errno("cannot start", arguments[0]);
    }
    pids_.push_back(pid);
  }
  std::string folder_;
  std::unique_ptr<FileStore> store_;
  std::vector<pid_t> pids_;
};

}  // namespace fleet
