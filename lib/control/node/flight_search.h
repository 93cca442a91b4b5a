// A look for the dumps of PyTorch's flight recorder of this node's ranks.
//
// PyTorch makes a pipe for each rank (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) and looks at it every second
// or so. Whatever is written to it makes the rank write a dump; it goes on. Protocol: DumpPipe in
// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, DebugInfoWriter in FlightRecorder.cpp.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "rendezvous/types.h"

namespace fleet {

// One thread calls run(); any thread may call the others meanwhile.
class FlightSearch {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;  // of the job
    pid_t pid = -1;
  };

  // Whole dumps are copied to `folder`, as flight_recorder_RANK. Waits for dumps for `limit`.
  FlightSearch(std::vector<Target> targets, std::string folder, std::chrono::milliseconds limit);
  // Blocks; longer than `limit` if a file system does not answer.
  void run();
  void cancel();
  bool ended() const;
  void wait_until_ended(std::chrono::steady_clock::time_point until) const;
  // The calls of the PyTorch ranks among the targets, or why they are not known (yet).
  std::vector<RankCollectives> results() const;

 private:
  // What tells one content of a file from another.
  struct FileState {
    int64_t inode = 0, size = -1, changed_ns = 0;
    bool operator==(const FileState&) const = default;
  };
  struct Dump {
    std::string path;
    FileState before, last;
  };
  // A rank that was asked for a dump.
  struct Asked {
    size_t place = 0;  // in results_
    RankCollectives result;
    int world_size = 0;
    std::vector<Dump> dumps;  // where it may appear
    std::string failure;      // of the last attempt to read one
    bool done = false;
  };

  void ask(const Target& target, const std::vector<pid_t>& processes);
  void wait_for_dumps();
  bool inspect(Asked* asked, bool last_time);
  bool read(Asked* asked, const std::string& path);
  size_t add_result(const RankCollectives& result);
  void set_result(size_t place, const RankCollectives& result);
  static FileState state_of(const std::string& path);

  const std::vector<Target> targets_;
  const std::string folder_;
  const std::chrono::milliseconds limit_;
  std::vector<Asked> asked_;  // of run()

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<RankCollectives> results_ FLEET_GUARDED_BY(mutex_);
  bool ended_ FLEET_GUARDED_BY(mutex_) = false;
  bool cancelled_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet
