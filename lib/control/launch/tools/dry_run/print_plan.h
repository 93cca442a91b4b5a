// Output of --dry_run.
#pragma once

#include <ostream>

#include "launch/planning/arguments.h"
#include "launch/planning/via_plan.h"
#include "launch/tools/dry_run/dry_run_plan.h"

namespace fleet {

// For people: the place and the variables of every rank, or only of this trainer unless `rank` is
// -1. Masks secrets. Throws kUsage if the rank does not exist. Writes piece by piece, so that
// memory hardly grows with the job.
void write_dry_run_table(const DryRunPlan& job, int rank, std::ostream& out);
// The same for programs, as JSON.
void write_dry_run_json(const DryRunPlan& job, int rank, std::ostream& out);
// Shell code for `eval` that sets the environment of `rank`. `masked_secrets` omits secrets, for a
// terminal.
void write_dry_run_shell(const DryRunPlan& job, int rank, bool masked_secrets, std::ostream& out);

// Writes one of the above to standard output, as the request's options choose.
void print_dry_run(const LaunchPlan& plan);

// One line per variable, with secrets masked and the lists of large worlds shortened.
std::string variables_text(const Variables& variables);

// Both mask secrets.
void write_via_table(const ViaPlan& plan, std::ostream& out);
void write_via_json(const ViaPlan& plan, std::ostream& out);
// Writes one of the two to standard output.
void print_via_plan(const ViaPlan& plan, const DryRun& options);

}  // namespace fleet
