// Limits of a job's output on a node, and the files that hold it.
//
// A rank's output of the current run goes to workerlog.N. A file that is closed, because it is full
// or because the ranks restarted, is renamed to workerlog.N.1, workerlog.N.2, and so on. Each
// number is used once; the highest is the newest. The kept output of a rank, in order, is therefore
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
// The closed pieces of the log at `path`, oldest first.
std::vector<LogPiece> find_log_pieces(const std::string& path);
// The same for several logs, by their paths; reads each of their folders once.
std::map<std::string, std::vector<LogPiece>> find_log_pieces(const std::vector<std::string>& paths);

// A line goes into one file even if that exceeds the size limit by up to this much. Longer lines
// are split.
inline constexpr int64_t kLongestLogLine = 64 << 10;

// The position of the cut to the next file.
struct LogCut {
  size_t bytes = 0;   // leading bytes of the output that still belong in this file
  bool full = false;  // then begin a new file
};
// `size`: bytes in the file; its last line is complete if `at_line_start`. max_size > 0.
LogCut cut_log(std::string_view output, int64_t size, bool at_line_start, int64_t max_size);

// The limit on all files of a node's ranks together. Not thread-safe.
class LogQuota {
 public:
  // total: bytes; 0: no limit.
  explicit LogQuota(int64_t total) : total_(total) {}
  // `bytes` are (or will be) in open files.
  void grow(int64_t bytes) { used_ += bytes; }
  // `size` bytes of those are now a closed piece, the newest.
  void close(std::string path, int64_t size) { pieces_.push_back({std::move(path), size}); }
  // Pieces to remove, oldest first, to respect the limit: they no longer count.
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
