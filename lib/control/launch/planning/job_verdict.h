// fleet-worker's verdict on a job file, before anything starts: only the worker knows the keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleet {

// The answer of `fleet-worker --check --format json`: docs/reference/job_file.md has its keys.
struct JobVerdict {
  bool ok = false;
  std::string code;     // kind of error: "usage", "not found", ...
  int exit_code = 0;    // that the worker would end with
  std::string message;  // for people; one line
};
// `output`: the worker's standard output. nullopt if it has no such answer, as that of another
// version may. Ignores keys that it does not know.
std::optional<JobVerdict> parse_job_verdict(const std::string& output);

// `command`: a rank's command line, of fleet-worker. Throws kUsage with the worker's message if the
// job file or the arguments are wrong. Warns in one line if the worker does not answer: the job
// then starts without the check.
void check_job_file(std::vector<std::string> command);

}  // namespace fleet
