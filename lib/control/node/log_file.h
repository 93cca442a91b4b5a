// A rank's log file, and the state that the log files of a node share: their size limit.
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

#include "base/file.h"
#include "transport/control_messages.h"

namespace fleet {

struct LogPiece {
  std::string path;
  int number = 0;
  int64_t size = 0;  // bytes
  std::filesystem::file_time_type changed;
};
// The closed pieces of the log at `path`, oldest first.
std::vector<LogPiece> find_log_pieces(const std::string& path);
// Like the above, for several logs, by their paths; reads each of their folders once.
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

// The log files of this node's ranks: their size limit, and one warning if the disk is full.
class LogFolder {
 public:
  LogFolder(const wire::LogSettings& settings, const std::vector<std::string>& paths);

 private:
  friend class LogFile;
  // Makes room for `bytes` more by removing the oldest pieces.
  void make_room(int64_t bytes);
  void on_failure(const std::string& path, const std::string& reason);
  void on_success(const std::string& path, int64_t missing);
  int next_number(const std::string& path, bool restarted) const;

  wire::LogSettings settings_;
  LogQuota bound_;
  std::map<std::string, int> next_numbers_;  // for logs that had pieces at first
  bool warned_ = false, removed_ = false;
};

class LogFile {
 public:
  enum class Start {
    kFirst,      // in this run: appends
    kRestarted,  // the content is of an earlier start of this rank in this run: sets it aside
    kReplaced,   // another process of this rank wrote the content: appends
  };
  // A failure is a warning: the job matters more than its log.
  LogFile(LogFolder* folder, std::string path, Start start);
  // Begins another file if this one is full. Output that cannot be written is dropped and counted.
  void write(std::string_view output);
  // No further output; the path does not come back. The file counts as a closed piece.
  void close();
  const std::string& path() const { return path_; }

 private:
  void open();
  void set_aside();  // renames it to the next number and opens a new file
  void write_here(std::string_view output);

  LogFolder* folder_;
  std::string path_;
  UniqueFd file_;
  int64_t size_ = 0, missing_ = 0;  // bytes
  int next_number_ = 1;
  bool at_line_start_ = true;
};

// Detects a second job that writes to a log folder: on a shared file system, it would mix its
// output into the first one's files and rename them.
class FolderLock {
 public:
  // Claims the folder in the name of `who` ("node 1 of job 'x'") for the lifetime of this object,
  // by a lock on a file in it, which NFS supports too. Without the lock, other claims go
  // undetected.
  FolderLock(const std::string& folder, const std::string& who);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

  // The existing claimant, in its own words; "" if there was none.
  const std::string& holder() const { return holder_; }

 private:
  std::string path_, holder_;
  UniqueFd file_;  // locked; empty if another claimant has it
};

}  // namespace fleet
