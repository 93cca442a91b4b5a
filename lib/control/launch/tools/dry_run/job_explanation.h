// fleet-worker's explanation of a job, for the dry run: only the worker can make its Program.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/environment.h"

namespace fleet {

// The answer of `fleet-worker --explain --format json`; docs/how-to/explain.md has its keys.
struct JobExplanation {
  std::vector<std::string> lines;  // for people
  std::string json;                // the object without "text"; "": there is none
  std::string missing;             // why there is none
};
// `output`: the worker's standard output.
JobExplanation parse_job_explanation(const std::string& output);

// `command`: a rank's command line, of fleet-worker. `environment`: of a rank; the variables that
// say what it computes with are passed on. Measures nothing: the times come from rates that were
// measured before. Call it before threads exist.
JobExplanation explain_job_file(const std::vector<std::string>& command, int ranks, int nodes,
                                const Variables& environment);

}  // namespace fleet
