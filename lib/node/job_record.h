// What runs on this node: every fleetrun keeps a small file about its job while it lives, and
// leaves a last one when it ends (ended_jobs.h). `fleetrun ls`, `logs`, `stacks` and `debug` find
// jobs by it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "node/log_reader.h"
#include "node/wire.h"
#include "rendezvous/types.h"

namespace fleet {

struct JobRecord {
  // A rank of this node that runs, or has run in this epoch.
  struct Rank {
    int local_rank = 0;
    int rank = 0;  // global; among the servers for one of them
    bool server = false;
    pid_t pid = -1;
    std::string log_path;   // absolute
    std::string error_log;  // of standard error; "": the same
    bool shown = false;     // on the launcher's console
    // What this run has written to log_path and error_log; the ends are set once it is over.
    LogMark log_begin, log_end, error_begin, error_end;

    bool operator==(const Rank&) const = default;
  };

  std::string job_id;
  pid_t pid = -1;                    // of this node's fleetrun
  std::string birth;                 // of that process: tells it from a later one of this pid
  std::string run;                   // the same on all nodes of this job; "": not known yet
  bool part = false;                 // whoever started this fleetrun reads and removes the record
  int node_rank = -1;                // -1: not known before the nodes have met
  int nnodes = 1;                    // as asked for; in epoch 1 and later the nodes that there are
  int world_size = 0;                // trainers; 0: not known yet
  int epoch = 0;                     // 0: the nodes have not met yet
  std::string address;               // this node's, as the others know it
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
  double at = 0;             // seconds since 1970; of a killed fleetrun, when that was noticed
  int code = 0;              // what its fleetrun exited with
  int stopped_by = 0;        // the signal by which it was told to stop; 0: it was not
  bool killed = false;       // its fleetrun was, and could not say more
  std::string verdict;       // as verdict.json; "" if there was none
  std::string verdict_path;  // the file with it; "" if there is none

  bool operator==(const JobEnd&) const = default;
};

std::string job_record_json(const JobRecord& record);
// kUsage where the text is no record.
JobRecord read_job_record(const std::string& json);

// The records of this user's jobs that run now, oldest first. The record of a fleetrun that was
// killed becomes that of an ended job. kUsage if the folder belongs to somebody else.
std::vector<JobRecord> find_jobs();

// The record in this file, if its fleetrun runs here. As find_jobs() if it was killed.
std::optional<JobRecord> read_running_job(const std::string& path);

// The name of its file in runtime_folder().
std::string job_record_name(const std::string& job_id, pid_t launcher);

// This process's own record. A job does not fail for the lack of it: one warning says that nothing
// can be kept.
class JobRecordFile {
 public:
  // `record`: what is known before the nodes have met; pid, folder and start are filled in.
  explicit JobRecordFile(JobRecord record);
  ~JobRecordFile();  // removes the file, except of a part
  JobRecordFile(const JobRecordFile&) = delete;

  // The job (re)starts. The file follows once all ranks of this node have their process.
  void on_assignment(const Assignment& assignment, const SpawnRanks& spawn);
  void on_rank_started(int local_rank, pid_t pid);
  // This node hosts the rendezvous from now on, where others reach it there.
  void on_hosting(const std::string& rendezvous);
  // The job has ended: a record of that takes the place of this one, except of a part.
  void end(JobEnd end);
  const JobRecord& record() const { return record_; }

 private:
  void write();  // kUsage or kIo
  void write_and_tidy();

  JobRecord record_;
  std::string path_;
  size_t missing_ = 0;  // ranks without a process
};

}  // namespace fleet
