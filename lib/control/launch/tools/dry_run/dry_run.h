// fleetrun --dry_run: predicts what a start would do, and prints it.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "launch/planning/arguments.h"
#include "launch/planning/environment.h"
#include "launch/planning/launch_plan.h"
#include "launch/planning/node_list.h"
#include "launch/planning/via_plan.h"
#include "launch/tools/doctor/facts.h"
#include "rendezvous/types.h"

namespace fleet {

// fleet-worker's explanation of a job: only the worker can make its Program. The answer of
// `fleet-worker --explain --format json`; docs/how-to/explain.md has its keys.
struct JobExplanation {
  std::vector<std::string> lines;  // for people
  std::string json;                // the object without "text"; "": there is none
  std::string missing;             // why there is none
};
// `output`: the worker's standard output.
JobExplanation parse_job_explanation(const std::string& output);

// `command`: a rank's command line of fleet-worker. `environment`: that rank's; the variables that
// say what it computes with are passed on. servers: parameter servers of the job. Measures nothing:
// the times come from rates that were measured before. Call it before threads exist.
JobExplanation explain_job_file(const std::vector<std::string>& command, int ranks, int nodes,
                                int servers, const Variables& environment);

struct DryRunRank {
  int node_rank = 0, local_rank = 0;
  bool server = false;        // a parameter server
  int rank = 0;               // index among the servers, or global rank
  wire::RankCommand command;  // with cores only for ranks of this node
};

// Everything that would start, as far as one node can know it before the nodes have joined.
struct DryRunPlan {
  std::string job_id, rendezvous;
  Assignment assignment;             // this node's, in the predicted world
  std::vector<std::string> program;  // the command of a rank
  std::vector<std::string> notes;    // assumptions
  Findings findings;                 // results of the doctor's checks on this node
  Variables inherited;               // variables of fleetrun's environment that every rank gets
  std::vector<std::string> removed;  // variables that ranks do not get
  std::optional<JobExplanation> explanation;  // for a job file; print_dry_run() asks for it
  // Calls `see` for each rank, node by node, or only for trainer `rank` unless that is -1. Creates
  // them one at a time, because a large job would not fit in memory.
  using Visitor = std::function<void(const DryRunRank&)>;
  std::function<void(int rank, const Visitor& visit)> for_each_rank;

  const World& world() const { return *assignment.world; }
  int processes() const { return world().world_size() + world().servers(); }
};

// `plan` is the plan before the nodes have joined; it must outlive the result. Other nodes are
// assumed to be like this one, unless the list of nodes differs. `environment`: fleetrun's own,
// "NAME=value" each.
DryRunPlan make_dry_run_plan(const LaunchPlan& plan, const std::vector<std::string>& environment);

// For people: the place and the variables of every rank, or only of this trainer unless `rank` is
// -1. Masks secrets. Throws kUsage if the rank does not exist. Writes piece by piece, so that
// memory hardly grows with the job.
void write_dry_run_table(const DryRunPlan& job, int rank, std::ostream& out);
// Like write_dry_run_table(), as JSON for programs.
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
