// What a rank runs.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// The command line of a rank: a .json job file runs `worker` (fleet-worker, beside fleetrun) with
// it, a .py `python3 -u`, anything else itself, looked up in PATH. argv[0] is a path that exists
// and may be executed; kUsage otherwise.
std::vector<std::string> rank_command(const std::vector<std::string>& program,
                                      const std::string& worker);

// Whether there is anything of this name to run: a file, or a program in PATH.
bool is_program(const std::string& name);

// Whether this is a job file, which runs fleet-worker.
bool is_job_file(const std::string& program);

// The fleet-worker that belongs to this fleetrun.
std::string worker_beside_launcher();

}  // namespace fleet
