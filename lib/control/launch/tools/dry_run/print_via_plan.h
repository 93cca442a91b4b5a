// --dry_run of a job started with --via.
#pragma once

#include <ostream>

#include "launch/planning/launch_request.h"
#include "launch/planning/via_plan.h"

namespace fleet {

// Both mask secrets.
void write_via_table(const ViaPlan& plan, std::ostream& out);
void write_via_json(const ViaPlan& plan, std::ostream& out);
// Writes one of the two to standard output.
void print_via_plan(const ViaPlan& plan, const DryRun& options);

}  // namespace fleet
