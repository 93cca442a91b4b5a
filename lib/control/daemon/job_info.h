// The state of a job on one node: what ls and status show, and what fleetd reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/job_record.h"

namespace fleet {

enum class JobPhase {
  kPrepared,  // a client has reserved resources; nothing runs
  kForming,   // its launcher runs and waits for other nodes
  kRunning,   // its ranks run
  kStopping,  // it has received a stop
  kEnded,
};
const char* name_of(JobPhase phase);

struct JobInfo {
  int number = 0;  // fleetd's internal number, because names are reused; not sent
  JobRecord record;
  JobPhase phase = JobPhase::kPrepared;
  std::vector<std::string> nodes;  // the fleetds of the job, as listed; empty: a job without fleetd
  int node_index = 0;  // index of this fleetd in `nodes`; node ranks may change at a restart
  std::vector<std::string> gpus;  // GPUs of the job on this node
  bool detached = false;          // continues without its client
  bool restarts = false;          // may continue without a lost node
  int code = -1;                  // kEnded: exit code of its fleetrun
  double ended = 0;               // kEnded: seconds since 1970
  std::string verdict;            // kEnded: verdict.json; "" if there is none
  // kEnded, for a job without fleetd:
  int stopped_by = 0;        // the signal that stopped its fleetrun; 0: none
  bool killed = false;       // whether its fleetrun was killed
  std::string verdict_path;  // the file with the verdict; "" if there is none
};

// The part of a run that knows its state or outcome best.
const JobInfo& authoritative_part(const std::vector<JobInfo>& parts);

// Whether both are nodes of one run of a job.
bool same_run(const JobInfo& a, const JobInfo& b);

std::string job_info_json(const JobInfo& job);
// Throws kUsage for invalid text.
JobInfo read_job_info(const std::string& json);

// The content of verdict.json.
struct VerdictSummary {
  std::string text;    // for people; "" for a success or a requested stop
  std::string cause;   // cause of a failure, in one line
  std::string stop;    // the signal that stopped the job, "SIGTERM"; "": none
  int generation = 0;  // the last generation; after a partition the surviving part has the highest
  bool node_lost = false;
};
std::optional<VerdictSummary> read_verdict(const std::string& json);  // nullopt for invalid text

// State of this node's part: "running", "succeeded", "stopped (SIGTERM)", "failed (5)", "killed".
std::string state_of(const JobInfo& job);

// The jobs of all nodes as one table, one line per run. `now`: seconds since 1970.
std::string jobs_table(const std::vector<JobInfo>& jobs, double now);
// Keeps only the last `ended` ended runs, and all others; returns how many it removed.
size_t trim_ended_runs(size_t ended, std::vector<JobInfo>* jobs);
// All details of one job, from each of its nodes.
std::string job_status(const std::vector<JobInfo>& parts, double now);
// The same for programs: an array with one object per job and node.
std::string jobs_json(const std::vector<JobInfo>& jobs);

}  // namespace fleet
