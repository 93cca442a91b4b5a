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
};

std::string job_info_json(const JobInfo& job);
// kUsage where the text is none.
JobInfo read_job_info(const std::string& json);

// What verdict.json says.
struct VerdictNote {
  std::string text;  // for people; "" for a success, or a stop that was asked for
  int epoch = 0;     // that it ended; of parts that fell apart the one that went on has the last
  bool node_lost = false;
};
std::optional<VerdictNote> read_verdict(const std::string& json);  // nothing: it is none

// What each node says of its jobs, as one table: a line a job, its nodes together. `now`: seconds
// since 1970.
std::string jobs_table(const std::vector<JobInfo>& jobs, double now);
// Everything of one job, from each of its nodes.
std::string job_status(const std::vector<JobInfo>& parts, double now);
// The same for programs: an array with an object a job and node.
std::string jobs_json(const std::vector<JobInfo>& jobs);

}  // namespace fleet
