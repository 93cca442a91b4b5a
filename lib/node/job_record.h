// What runs on this node, for whoever asks: every fleetrun keeps a small file about its job while
// it lives. `fleetrun ls`, `stacks` and `debug` find jobs by it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

struct JobRecord {
  // A rank of this node that runs, or has run in this epoch.
  struct Rank {
    int local_rank = 0;
    int rank = 0;  // global; among the servers for one of them
    bool server = false;
    pid_t pid = -1;
    std::string log_path;  // absolute

    bool operator==(const Rank&) const = default;
  };

  std::string job_id;
  pid_t pid = -1;                    // of this node's fleetrun
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

// Where records are, 0700: FLEET_RUNTIME_DIR, or $XDG_RUNTIME_DIR/fleetrun, or /tmp/fleetrun-UID.
std::string job_record_folder();
// The same, made where it was not there yet. kIo where it belongs to somebody else.
std::string make_job_record_folder();

std::string job_record_json(const JobRecord& record);
// kUsage where the text is no record.
JobRecord read_job_record(const std::string& json);

// The records of this user's jobs that run now, oldest first. Those whose fleetrun was killed are
// removed. kIo where the folder belongs to somebody else.
std::vector<JobRecord> find_jobs();

// What its file in that folder is called.
std::string job_record_name(const std::string& job_id, pid_t launcher);

// This process's own record. A job does not fail for the lack of it: what cannot be written is said
// at debug level.
class JobRecordFile {
 public:
  // `record`: what is known before the nodes have met; pid, folder and start are filled in.
  // `stays`: whoever started this process reads the file in the end, and removes it.
  explicit JobRecordFile(JobRecord record, bool stays = false);
  ~JobRecordFile();  // removes the file, unless it stays
  JobRecordFile(const JobRecordFile&) = delete;

  // The job (re)starts. The file follows once all ranks of this node have their process.
  void on_assignment(const Assignment& assignment, const std::vector<std::string>& log_paths);
  void on_rank_started(int local_rank, pid_t pid);
  const JobRecord& record() const { return record_; }

 private:
  void write();

  JobRecord record_;
  const bool stays_;
  std::string path_;
  size_t missing_ = 0;  // ranks without a process
};

}  // namespace fleet
