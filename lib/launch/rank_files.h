// Where the output of a node's ranks is kept: as Paddle names the files, or as torchrun does.
#pragma once

#include <string>

#include "base/config.h"
#include "launch/shown_ranks.h"
#include "node/wire.h"

namespace fleet {

struct RankFiles {
  std::string output;   // its standard output; empty: it is kept nowhere
  std::string errors;   // its standard error; maybe the same
  std::string failure;  // TORCHELASTIC_ERROR_FILE; absolute, as the program may change its folder
};

// The job's folder. Paddle: --log_dir. torchrun: a new one, ID_RANDOM, in --log_dir, or in a
// private one of the folder for temporary files. Nothing is made here.
std::string log_folder(const Settings& settings);
// Whether that is below a folder of its own that goes away after a success.
bool is_temporary_log_folder(const Settings& settings);
// The folder that `log_folder` is in, where is_temporary_log_folder().
std::string temporary_parent(const std::string& log_folder);

// Paddle: FOLDER/workerlog.N, serverlog.N where there are servers (the first ranks of a node), and
// with --log_split workerlog.N.err. torchrun: FOLDER/attempt_K/N/stdout.log and stderr.log of the
// streams that --redirects and --tee name. `attempt`: restarts after failures so far.
class RankFilesOf {
 public:
  RankFilesOf(const Settings& settings, std::string folder);
  RankFiles of(int local_rank, int servers, int attempt) const;
  // What --duplicate_stdout_filters (`errors`: _stderr_) wants kept once more, and where: in
  // filtered_stdout.log beside the logs.
  CopiedLines copies(bool errors, int attempt) const;

 private:
  bool as_torchrun_, split_;
  std::string folder_, absolute_folder_;
  ShownRanks shown_;
  std::string output_filters_, error_filters_;
};

}  // namespace fleet
