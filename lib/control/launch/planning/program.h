// The program that a rank runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// The kind of the program's first word.
enum class ProgramKind {
  kByName,      // a .json job file, a .py, or a program
  kScript,      // a Python script, whatever its name
  kModule,      // a Python module, as for python -m
  kRunPath,     // a script, folder or zip file for Python's runpy.run_path()
  kExecutable,  // a program, whatever its name
};

// Selected by --module, --no_python, --run_path and --compat=torchrun, which treats every program
// as a script.
ProgramKind read_program_kind(const Settings& settings);

// The command line of a rank. A .json job file runs in `worker` (fleet-worker, next to fleetrun), a
// .py file with `python3 -u`, anything else directly, looked up in PATH. argv[0] is the path of an
// existing executable; throws kUsage otherwise. PYTHON_EXEC selects another Python, as for
// torchrun. A "--" after a Python script belongs to the launcher, as for torchrun and Paddle.
std::vector<std::string> rank_command(const std::vector<std::string>& program,
                                      const std::string& worker,
                                      ProgramKind kind = ProgramKind::kByName);

// Whether the path leads to a regular file.
bool is_file(const std::string& path);
// Whether the name is a file, or a program in PATH.
bool is_program(const std::string& name);

// Whether this is a job file, which fleet-worker runs.
bool is_job_file(const std::string& program);

// The flag of fleetrun debug in a rank: `fleetrun debug --stand_in -- PROGRAM`.
inline constexpr char kPlaceholderFlag[] = "--stand_in";
// The command that runs in place of a rank's program until fleetrun debug starts that program
// (--debug_rank). It has the rank's environment, folder and cores.
std::vector<std::string> placeholder_command(const std::vector<std::string>& command);

// The path of this program.
std::string own_path();
// The fleet-worker that belongs to this fleetrun.
std::string default_worker_path();

// fleet-worker's verdict on a job file, before anything starts: only the worker knows the keys. The
// answer of `fleet-worker --check --format json`: docs/reference/job_file.md has its keys.
struct JobVerdict {
  bool ok = false;
  std::string code;     // kind of error: "usage", "not found", ...
  int exit_code = 0;    // that the worker would end with
  std::string message;  // for people; one line
};
// `output`: the worker's standard output. nullopt if it has no such answer, as that of another
// version may. Ignores keys that it does not know.
std::optional<JobVerdict> parse_job_verdict(const std::string& output);

// The ranks of a job that has not started yet: what a rank runs depends on them.
struct PlannedRanks {
  int world_size = 1, local_world_size = 1, nnodes = 1;
  int servers = 0;                // parameter servers; the ranks are their trainers
  std::vector<int> devices = {};  // GPUs of the first rank of this node; empty: CPU
  bool exact = true;              // false: other nodes may bring another number of ranks
};

// `command`: a rank's command line, of fleet-worker. Throws kUsage with the worker's message if the
// job file or the arguments are wrong for these ranks; if their number is not exact, only if they
// are wrong for a single rank too. Warns in one line if the worker does not answer: the job then
// starts without the check.
void check_job_file(std::vector<std::string> command, const PlannedRanks& ranks);

}  // namespace fleet
