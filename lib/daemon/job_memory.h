// What a fleetd knows of its jobs, kept on the disk: one that starts again still knows how they
// ended, and what they have shown.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "daemon/console_log.h"
#include "daemon/job_info.h"

namespace fleet {

// A file a job: how many there are is up to who keeps and forgets. Not thread safe.
class JobMemory {
 public:
  JobMemory() = default;  // keeps nothing
  // `folder` is made (0700) where it is missing. kIo where that cannot be, or it is not this user's
  // alone; kUsage where another fleetd uses it.
  explicit JobMemory(const std::string& folder);

  // In the place of what was kept under its name. No job fails for the lack of it: what goes wrong
  // is said once.
  void keep(const JobInfo& job, const ConsoleLog& console);
  void forget(const std::string& job_id);

  struct Kept {
    JobInfo job;
    ConsoleLog console;
  };
  // Oldest first. What makes no sense, or was not finished, is removed.
  std::vector<Kept> load() const;

 private:
  std::string path_of(const std::string& job_id) const;

  std::string folder_;
  UniqueFd lock_;
  bool said_ = false;
};

// Where a fleetd that listens there keeps its jobs: systemd's STATE_DIRECTORY, or a folder of this
// host and address in $XDG_STATE_HOME or ~/.local/state; "" where there is no home.
std::string default_job_memory(const std::string& address, int port);

}  // namespace fleet
