// Paths of the ranks' output, named like Paddle's or torchrun's.
#pragma once

#include <string>

#include "launch/planning/launch_config.h"
#include "rendezvous/control_messages.h"

namespace fleet {

struct RankFiles {
  std::string output;   // standard output; empty: not stored
  std::string errors;   // standard error; may be the same file
  std::string failure;  // TORCHELASTIC_ERROR_FILE; absolute, as the program may change its folder
};

// The job's log folder. Paddle: --log_dir. torchrun: a new folder ID_RANDOM in --log_dir, or in a
// private temporary folder. Creates nothing.
std::string log_folder(const LaunchConfig& config);
// Whether the log folder is in a temporary folder that is removed after a success.
bool is_temporary_log_folder(const LaunchConfig& config);
// The parent of `log_folder`, if is_temporary_log_folder().
std::string temporary_parent(const std::string& log_folder);

// Paddle: FOLDER/workerlog.N, serverlog.N for servers (the first ranks of a node), and
// workerlog.N.err with --log_split. torchrun: FOLDER/attempt_K/N/stdout.log and stderr.log for the
// streams in --redirects and --tee. `attempt`: the number of restarts after failures so far.
class RankFileLayout {
 public:
  RankFileLayout(const LaunchConfig& config, std::string folder);
  RankFiles of(int local_rank, int servers, int attempt) const;
  // The lines that --duplicate_stdout_filters (`errors`: _stderr_) copies, and the file for them:
  // filtered_stdout.log in the folder of the logs.
  wire::CopiedLines copies(bool errors, int attempt) const;

 private:
  bool as_torchrun_, split_;
  std::string folder_, absolute_folder_;
  ShownRanks shown_;
  std::vector<std::string> output_filters_, error_filters_;
};

}  // namespace fleet
