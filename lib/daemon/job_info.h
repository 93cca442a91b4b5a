// A job on one node, as people ask for it: what ls and status show, and what fleetd tells.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/job_record.h"

namespace fleet {

enum class JobPhase {
  kPrepared,  // a client has reserved its place; nothing runs
  kForming,   // its launcher runs and waits for other nodes
  kRunning,   // its ranks run
  kStopping,  // it was told to stop
  kEnded,
};
const char* name_of(JobPhase phase);

struct JobInfo {
  int number = 0;  // a fleetd's own: names come again; not told
  JobRecord record;
  JobPhase phase = JobPhase::kPrepared;
  std::vector<std::string> nodes;  // the fleetds of the job, as listed; empty: started without
  int place = 0;                   // of this one among them; ranks may change at a restart
  std::vector<std::string> gpus;   // that it has here
  bool detached = false;           // goes on without its client
  bool restarts = false;           // may go on without a node that is lost
  int code = -1;                   // kEnded: what its fleetrun exited with
  double ended = 0;                // kEnded: seconds since 1970
  std::string verdict;             // kEnded: verdict.json, "" where there is none
  // kEnded, of a job that was started without fleetd:
  int stopped_by = 0;        // the signal by which its fleetrun was told to stop; 0: it was not
  bool killed = false;       // its fleetrun was
  std::string verdict_path;  // the file with the verdict; "" if there is none
};

// Of the parts of one run, the one that knows best how it gets on, or ended.
const JobInfo& outcome_of(const std::vector<JobInfo>& parts);

// Whether the two are nodes of one run of a job.
bool same_run(const JobInfo& a, const JobInfo& b);

std::string job_info_json(const JobInfo& job);
// kUsage where the text is none.
JobInfo read_job_info(const std::string& json);

// What verdict.json says.
struct VerdictNote {
  std::string text;   // for people; "" for a success, or a stop that was asked for
  std::string cause;  // of a failure, in one line
  std::string stop;   // the signal by which the job was told to stop: "SIGTERM"; "": it was not
  int epoch = 0;      // that it ended; of parts that fell apart the one that went on has the last
  bool node_lost = false;
};
std::optional<VerdictNote> read_verdict(const std::string& json);  // nothing: it is none

// "running", "succeeded", "stopped (SIGTERM)", "failed (5)", "killed": of this node's part.
std::string state_of(const JobInfo& job);

// What each node says of its jobs, as one table: a line a run, its nodes together. `now`: seconds
// since 1970.
std::string jobs_table(const std::vector<JobInfo>& jobs, double now);
// Of the runs that have ended only the last `ended`, and all others; how many are left out.
size_t leave_out_old(size_t ended, std::vector<JobInfo>* jobs);
// Everything of one job, from each of its nodes.
std::string job_status(const std::vector<JobInfo>& parts, double now);
// The same for programs: an array with an object a job and node.
std::string jobs_json(const std::vector<JobInfo>& jobs);

}  // namespace fleet
