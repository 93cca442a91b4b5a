// How much of a job's output is kept on a node, and in which files.
//
// A rank's output of the current run goes to workerlog.N. What is closed, because it is full or
// because the ranks were restarted, is renamed to workerlog.N.1, workerlog.N.2, and so on: each
// number is used once, the highest is the newest. So all that is kept of a rank, in order, is
// find_log_pieces() and then workerlog.N.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

struct LogPiece {
  std::string path;
  int number = 0;
  int64_t size = 0;  // bytes
  std::filesystem::file_time_type changed;
};
// What has been closed of the log at `path`, oldest first.
std::vector<LogPiece> find_log_pieces(const std::string& path);
// The same of several logs, by their paths; each of their folders is read once.
std::map<std::string, std::vector<LogPiece>> find_log_pieces(const std::vector<std::string>& paths);

// A line is written into one file even if it makes that as much longer than it should be. What is
// longer than this is torn.
inline constexpr int64_t kLongestLogLine = 64 << 10;

// Where to go on with the next file.
struct LogCut {
  size_t bytes = 0;   // of the output that still belong into this one
  bool full = false;  // then a new one is due
};
// `size`: bytes in the file, whose last line is whole where `at_line_start`. max_size > 0.
LogCut cut_log(std::string_view output, int64_t size, bool at_line_start, int64_t max_size);

// The bound on all files of a node's ranks together. Not thread safe.
class LogBound {
 public:
  // total: bytes; 0: no bound.
  explicit LogBound(int64_t total) : total_(total) {}
  // `bytes` are (or will be) in files that are still written.
  void grow(int64_t bytes) { used_ += bytes; }
  // `size` bytes of those are now a closed piece, newer than all others.
  void close(std::string path, int64_t size) { pieces_.push_back({std::move(path), size}); }
  // The pieces to be removed, oldest first, so that the bound holds: they are counted as gone.
  std::vector<std::string> excess();

 private:
  struct Piece {
    std::string path;
    int64_t size;
  };
  int64_t total_, used_ = 0;
  std::deque<Piece> pieces_;
};

}  // namespace fleet
