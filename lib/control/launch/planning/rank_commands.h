// Instructions for the guardian: the command, environment, cores and files of each rank.
#pragma once

#include <map>
#include <string>

#include "launch/planning/cores.h"
#include "launch/planning/environment.h"
#include "launch/planning/launch_plan.h"
#include "transport/control_messages.h"

namespace fleet {

// In the log folder: where reports of steps are kept (node/step_history.h).
inline constexpr char kMetricsFile[] = "/metrics.jsonl";

// Paths of a rank's output, named like Paddle's or torchrun's.
struct RankFiles {
  std::string output;  // standard output; empty: not stored
  std::string errors;  // standard error; may be the same file
  // Absolute, as the program may change its folder:
  std::string failure;  // TORCHELASTIC_ERROR_FILE
  std::string steps;    // FLEET_STEPS_FILE
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
// steps: workerlog.N.steps, or steps in that folder.
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

// Replaces $NAME and ${NAME} if NAME is a key of `values`, and "$$" by "$", as Python's
// string.Template.safe_substitute(). Leaves everything else unchanged.
std::string fill_template(const std::string& text,
                          const std::map<std::string, std::string>& values);

// Throws kUsage, naming `origin`, if the job has no such rank.
void check_rank(int rank, int world_size, const std::string& origin);

// The inputs of a rank's environment besides the Assignment, except for its cores.
RankContext rank_context(const LaunchPlan& plan);

// Creates the commands of the ranks of one world. Parts common to all ranks are created once.
class RankCommands {
 public:
  // Throws kUsage if the world lacks a rank that the options name.
  RankCommands(const LaunchPlan& plan, const Assignment& assignment, int terminal_width);
  // For a rank of any node, on `cores` of this machine.
  wire::RankCommand of(const Assignment& assignment, int local_rank, const CorePlan& cores) const;

 private:
  const LaunchPlan& plan_;
  RankContext context_;
  ShownRanks shown_;
  RankFileLayout files_;
  int terminal_width_, debugged_;
};

// The commands of this node's ranks and the settings of their logs, once the world is known.
// `terminal_width`: columns of the terminal that shows local rank 0; 0 if none does.
wire::SpawnRanks rank_commands(const LaunchPlan& plan, const Assignment& assignment,
                               int terminal_width);

}  // namespace fleet
