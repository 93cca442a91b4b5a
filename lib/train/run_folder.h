// The folder of a run: what it writes is there, and never mixes with what another run wrote.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

struct RunFolderOptions {
  std::string output;      // the folder (train.output); "": output/NAME/run-001, run-002...
  std::string name;        // NAME: one part of a path
  bool resumes = false;    // "" is then the newest folder of that name, where there is one
  std::string run;         // names all starts of one job; "": it has only one
  bool restarted = false;  // the newest folder is this run's, if its mark says so
};

// Held by rank 0 while the run lasts; a lock in the folder tells other jobs, on machines that share
// it too. Not thread-safe.
class RunFolder {
 public:
  // Chooses the folder, makes it, and locks it. kUsage where it cannot be written, or another job
  // that is running writes there.
  explicit RunFolder(const RunFolderOptions& options);
  // Removes a folder of its own below output/NAME where the run has not begun.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  const std::string& path() const { return path_; }
  // The run writes from now on: below output/NAME the link `latest` leads to it.
  void begin();

 private:
  void choose(const RunFolderOptions& options);
  void lock(const std::string& run);

  std::string path_;
  std::string root_;   // output/NAME; "": the folder was given
  bool made_ = false;  // for this run, which has not begun yet
  UniqueFd lock_;
};

// The folders output/NAME/run-001, run-002..., the newest first.
std::vector<std::string> runs_of(const std::string& name);

// Whether this run has called the folder its own.
bool is_of_run(const std::string& folder, const std::string& run);
void mark_as_of_run(const std::string& folder, const std::string& run);

// Renames what has this path to PATH.1, or the next such name that is free, which it returns; none
// where there is nothing. kIo.
std::optional<std::string> set_aside(const std::string& path);

}  // namespace fleet
