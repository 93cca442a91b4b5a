// The folder of a run: holds all its output, and never mixes it with that of another run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

struct RunFolderOptions {
  std::string output;      // the folder (train.output); "": output/NAME/run-001, run-002...
  std::string name;        // NAME: one part of a path
  bool resumes = false;    // if true, "" selects the newest folder of that name, if any
  std::string run;         // identifies all starts of one job; "": it has only one
  bool restarted = false;  // use the folder whose mark shows that it belongs to this run, if any
};

// The folder of an earlier start that RunFolder would choose, or `output`; "": it would create one.
std::string folder_to_continue(const RunFolderOptions& options);

// Rank 0 holds it while the run lasts. A lock in the folder excludes other jobs, also on other
// machines that share it. Not thread-safe.
class RunFolder {
 public:
  // Chooses, creates and locks the folder. kUsage if it cannot be written, or if another running
  // job writes there.
  explicit RunFolder(const RunFolderOptions& options);
  // Removes the folder below output/NAME that it created, if the run has not begun.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  const std::string& path() const { return path_; }
  // Marks the start of the run: below output/NAME the link `latest` now points to it.
  void begin();

 private:
  void choose(const RunFolderOptions& options);
  void lock(const std::string& run);

  std::string path_;
  std::string root_;   // output/NAME; "": train.output names the folder
  bool made_ = false;  // created for this run, which has not begun yet
  UniqueFd lock_;
};

// The folders output/NAME/run-001, run-002..., the newest first.
std::vector<std::string> runs_of(const std::string& name);

// Whether the folder is marked as belonging to this run.
bool is_of_run(const std::string& folder, const std::string& run);
void mark_as_of_run(const std::string& folder, const std::string& run);

// Renames a file or folder to PATH.1, or to the next free name of that kind, which it returns;
// nullopt if there is nothing at this path. kIo.
std::optional<std::string> set_aside(const std::string& path);

}  // namespace fleet
