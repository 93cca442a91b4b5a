// How --dry_run shows what would be started.
#pragma once

#include <ostream>

#include "launch/dry_run/foresee.h"

namespace fleet {

// For people: where every rank goes and what it gets; only this trainer where `rank` is not -1.
// Secrets are masked. kUsage where there is no such rank. What is written goes out piece by piece:
// it grows with the job, memory hardly.
void write_dry_run_table(const ForeseenJob& job, int rank, std::ostream& out);
// The same for programs, as JSON.
void write_dry_run_json(const ForeseenJob& job, int rank, std::ostream& out);
// `eval`-able: makes a shell's environment that of `rank`. `masked_secrets`: without them, for a
// terminal.
void write_dry_run_shell(const ForeseenJob& job, int rank, bool masked_secrets, std::ostream& out);

// One of the above, to standard output, as the request's options say.
void print_dry_run(const LaunchPlan& plan);

// A line a variable, secrets masked, lists of large worlds shortened.
std::string variables_text(const Variables& variables);

}  // namespace fleet
