// fleetd's record of its jobs on disk: after a restart, it still knows their outcome and output.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "daemon/job_info.h"

namespace fleet {

// Bytes kept per job.
inline constexpr size_t kConsoleLogBytes = 512 << 10;

// The most recent console output of a job, for clients that attach later.
class ConsoleLog {
 public:
  struct Chunk {
    bool error = false;  // from standard error
    std::string text;
  };
  ConsoleLog() : ConsoleLog(kConsoleLogBytes) {}
  explicit ConsoleLog(size_t bytes) : limit_(bytes) {}

  void add(bool error, std::string_view text);
  // Positions count every byte ever added. Bytes before begin() have been dropped.
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  // The chunk at *at, or at begin() if that is later, limited to `most` bytes. Advances *at past
  // it. An empty text means that there is no more output yet.
  Chunk next(uint64_t* at, size_t max_bytes) const;

 private:
  size_t limit_;
  std::deque<Chunk> chunks_;
  uint64_t begin_ = 0, end_ = 0;
};

// One file per job. The caller limits their number. Not thread safe.
class JobStore {
 public:
  JobStore() = default;  // keeps nothing
  // Creates `folder` (mode 0700) if it is missing. Throws kIo if that fails or the folder is not
  // private to this user, kUsage if another fleetd uses it.
  explicit JobStore(const std::string& folder);

  // Replaces the record of the same name. Errors do not fail the job; the first one is logged.
  void save(const JobInfo& job, const ConsoleLog& console);
  void remove(const std::string& job_id);

  struct StoredJob {
    JobInfo job;
    ConsoleLog console;
  };
  // Returns the records, oldest first. Removes invalid and incomplete records.
  std::vector<StoredJob> load() const;

 private:
  std::string path_of(const std::string& job_id) const;

  std::string folder_;
  UniqueFd lock_;
  bool warned_ = false;
};

// The default folder of a fleetd with this address: systemd's STATE_DIRECTORY, or a folder for this
// host and address in $XDG_STATE_HOME or ~/.local/state; "" without a home folder.
std::string default_job_store(const std::string& address, int port);

}  // namespace fleet
