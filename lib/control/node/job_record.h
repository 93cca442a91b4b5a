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

using wire::JobRecord;

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
  int missing_ = 0;  // ranks without a process
};

}  // namespace fleet
