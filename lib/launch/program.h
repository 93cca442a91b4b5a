// What a rank runs.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// What the first word of a program is.
enum class ProgramKind {
  kByName,      // a .json job file, a .py, or a program
  kScript,      // a Python script, whatever its name
  kModule,      // a Python module, as of python -m
  kRunPath,     // what Python's runpy.run_path() runs: a script, a folder, a zip file
  kExecutable,  // a program, whatever its name
};

// By --module, --no_python, --run_path and --compat=torchrun, which takes everything for a script.
ProgramKind program_kind(const Settings& settings);

// The command line of a rank: a .json job file runs `worker` (fleet-worker, beside fleetrun) with
// it, a .py `python3 -u`, anything else itself, looked up in PATH. argv[0] is a path that exists
// and may be executed; kUsage otherwise. PYTHON_EXEC names another python, as for torchrun, and a
// "--" behind a Python script is the launcher's, as for torchrun and Paddle.
std::vector<std::string> rank_command(const std::vector<std::string>& program,
                                      const std::string& worker,
                                      ProgramKind kind = ProgramKind::kByName);

// Whether there is anything of this name to run: a file, or a program in PATH.
bool is_program(const std::string& name);

// Whether this is a job file, which runs fleet-worker.
bool is_job_file(const std::string& program);

// The fleet-worker that belongs to this fleetrun.
std::string worker_beside_launcher();

}  // namespace fleet
