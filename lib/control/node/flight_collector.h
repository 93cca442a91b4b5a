// Collects the dumps of PyTorch's flight recorder of this node's ranks.
//
// PyTorch makes a pipe for each rank (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) and looks at it every second
// or so. Whatever is written to it makes the rank write a dump; it goes on. Protocol: DumpPipe in
// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, DebugInfoWriter in FlightRecorder.cpp.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Not thread-safe.
class FlightCollector {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;  // of the job
    pid_t pid = -1;
  };
  using Done = std::function<void(std::vector<RankCollectives>)>;

  explicit FlightCollector(boost::asio::io_context& loop) : loop_(loop), timer_(loop) {}
  // Calls back once, at the latest after `limit`, with the calls of the PyTorch ranks among
  // `targets`, or why they are not known. Whole dumps are copied to `folder`, as
  // flight_recorder_RANK. Does nothing while an earlier call is pending.
  void collect(const std::vector<Target>& targets, const std::string& folder,
               std::chrono::milliseconds limit, Done on_done);

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
    size_t result = 0;  // its place in results_
    int world_size = 0;
    std::vector<Dump> dumps;  // where it may appear
    std::string failure;      // of the last attempt to read one
    bool done = false;
  };

  void ask(const Target& target, const std::vector<pid_t>& processes);
  void poll();
  bool inspect(Asked* asked, bool last_time);
  bool read(Asked* asked, const std::string& path);
  void finish();
  static FileState state_of(const std::string& path);

  boost::asio::io_context& loop_;
  boost::asio::steady_timer timer_;
  std::string folder_;
  std::chrono::milliseconds limit_{};
  std::chrono::steady_clock::time_point deadline_;
  std::vector<Asked> asked_;
  std::vector<RankCollectives> results_;
  Done on_done_;
};

}  // namespace fleet
