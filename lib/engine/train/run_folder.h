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
  bool resumes = false;    // if true, "" selects a folder of that name, if any: continued_folder()
  std::string run;         // identifies all starts of one job; "": it has only one
  bool restarted = false;  // use the folder whose mark shows that it belongs to this run, if any
};

// The folder that a start continues in.
struct ContinuedFolder {
  std::string path;                  // "": there is none, a new one is created
  bool saved = false;                // a checkpoint exists there
  std::vector<std::string> unsaved;  // runs without a complete checkpoint, the newest first, up to
                                     // the one that has some

  // If the start resumes: a line about a folder without checkpoint, or about newer runs that it
  // passes over; "" if neither.
  std::string note() const;
  // Whether training starts from the beginning although there were runs.
  bool forgets_runs() const { return !saved && !unsaved.empty(); }
};
// If options.resumes: the newest run that has a complete checkpoint, else the newest run.
ContinuedFolder continued_folder(const RunFolderOptions& options);

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
  // As it was before this start.
  const ContinuedFolder& continued() const { return continued_; }
  // Marks the start of the run: below output/NAME the link `latest` now points to it.
  void begin();

 private:
  void choose(const RunFolderOptions& options);
  void lock(const std::string& run);

  const ContinuedFolder continued_;
  std::string path_;
  std::string root_;   // output/NAME; "": train.output names the folder
  bool made_ = false;  // created for this run, which has not begun yet
  UniqueFd lock_;
};

// The folders output/NAME/run-001, run-002..., the newest first.
std::vector<std::string> runs_of(const std::string& name);

// "a, b and 3 more have no complete checkpoint"; runs: not empty.
std::string without_checkpoint(const std::vector<std::string>& runs);

// Where TensorBoard's files of a run are. It follows links: below output/NAME/run-001 it would find
// them again through output/NAME/latest, so they are in output/NAME/tensorboard/run-001.
std::string tensorboard_folder(const std::string& run);

// Whether the folder is marked as belonging to this run.
bool is_of_run(const std::string& folder, const std::string& run);
void mark_as_of_run(const std::string& folder, const std::string& run);

// Renames a file or folder to PATH.1, or to the next free name of that kind, which it returns;
// nullopt if there is nothing at this path. kIo.
std::optional<std::string> set_aside(const std::string& path);

}  // namespace fleet
