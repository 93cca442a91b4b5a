// The jobs that run on this node: every fleetrun keeps a small record file of its job while it
// lives and leaves a final one when it ends (ended_jobs.h). `fleetrun ls`, `logs`, `stacks` and
// `debug` find jobs by it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "node/log_reader.h"
#include "rendezvous/control_messages.h"
#include "rendezvous/types.h"

namespace fleet {

struct JobRecord {
  // A rank of this node that runs, or has run in this generation.
  struct Rank {
    int local_rank = 0;
    int rank = 0;  // global; for a parameter server: among the servers
    bool server = false;
    pid_t pid = -1;
    std::string log_path;   // absolute
    std::string error_log;  // of standard error; "": the same
    bool shown = false;     // on the launcher's console
    // The range in log_path and error_log written by this run; the ends are set once it is over.
    LogPosition log_begin, log_end, error_begin, error_end;

    bool operator==(const Rank&) const = default;
  };

  std::string job_id;
  pid_t pid = -1;  // of this node's fleetrun
  std::string
      start_ticks;    // start time of that process: distinguishes it from a later one with this pid
  std::string run;    // the same on all nodes of this job; "": not known yet
  bool part = false;  // the starter of this fleetrun reads and removes the record
  int node_rank = -1;                // -1: not known while the job forms
  int nnodes = 1;                    // as requested; from generation 1 on the actual number
  int world_size = 0;                // trainers; 0: not known yet
  int generation = 0;                // generation; 0: the job is forming
  std::string address;               // this node's, as other nodes know it
  std::string rendezvous;            // where to reach it: "10.0.0.1:6768"
  std::string log_dir;               // absolute
  std::string folder;                // the working directory
  double started = 0;                // seconds since 1970
  std::vector<std::string> command;  // the program and its arguments
  std::vector<Rank> ranks;           // of this node, by local rank

  bool operator==(const JobRecord&) const = default;
};

// How a job ended on this node.
struct JobEnd {
  double at = 0;             // seconds since 1970; for a killed fleetrun, when that was noticed
  int code = 0;              // fleetrun's exit code
  int stopped_by = 0;        // the signal that requested the stop; 0: none
  bool killed = false;       // its fleetrun was killed and could report no more
  std::string verdict;       // as in verdict.json; "" if there was none
  std::string verdict_path;  // the file with it; "" if there is none

  bool operator==(const JobEnd&) const = default;
};

std::string job_record_json(const JobRecord& record);
// Throws kUsage if the text is not a record.
JobRecord read_job_record(const std::string& json);

// The records of this user's running jobs, oldest first. The record of a killed fleetrun becomes
// that of an ended job. Throws kUsage if the folder belongs to another user.
std::vector<JobRecord> find_jobs();

// The record in this file, if its fleetrun runs here. If that was killed, acts as find_jobs() does.
std::optional<JobRecord> read_running_job(const std::string& path);

// The name of its file in runtime_folder().
std::string job_record_name(const std::string& job_id, pid_t launcher);

// This process's own record. If it cannot be kept, the job still runs, with one warning.
class JobRecordFile {
 public:
  // `record`: the job while it forms; pid, folder and start time are filled in.
  explicit JobRecordFile(JobRecord record);
  ~JobRecordFile();  // removes the file, except of a part
  JobRecordFile(const JobRecordFile&) = delete;

  // The job (re)starts. The file is written once all ranks of this node have their process.
  void on_assignment(const Assignment& assignment, const wire::SpawnRanks& spawn);
  void on_rank_started(int local_rank, pid_t pid);
  // This node hosts the rendezvous from now on, at this address for other nodes.
  void on_hosting(const std::string& rendezvous);
  // The job has ended: its final record replaces this one, except for a part.
  void end(JobEnd end);
  const JobRecord& record() const { return record_; }

 private:
  void write();  // kUsage or kIo
  void write_and_clean();

  JobRecord record_;
  std::string path_;
  size_t missing_ = 0;  // ranks without a process
};

}  // namespace fleet
