// The jobs that run on this node: every fleetrun keeps a small record file of its job while it
// lives and leaves a final one when it ends (ended_jobs.h). `fleetrun ls`, `logs`, `stacks` and
// `debug` find jobs by it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "node/log_reader.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"

namespace fleet {

using wire::JobInfo;
using wire::JobRecord;

// For programs: as `fleetrun ls` shows it.
Json job_record_json(const JobRecord& record);
// Throws kUsage if the file is not a record; kNotFound and kIo as read_file() does.
JobRecord read_job_record(const std::string& path);
// Names a run of a job: "night.4711.1763800000000".
std::string run_name(const JobRecord& record);

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
  // The file is written at once: this process may be killed before its end.
  void on_verdict(wire::JobVerdict verdict);
  // How far its training is; `write`: also in the file.
  void on_progress(const wire::JobProgress& progress, bool write);
  // This node hosts the rendezvous from now on, at this address for other nodes.
  void on_hosting(const std::string& rendezvous);
  // The job has ended: its final record replaces this one, except for a part. `how`: its exit code,
  // and how it was stopped.
  // logs_respond: whether to look for the ends of the logs.
  void end(JobInfo how, bool logs_respond = true);
  const JobRecord& record() const { return record_; }

 private:
  void write();  // kUsage or kIo
  void try_to_write();
  void write_and_clean();

  JobRecord record_;
  std::string path_;
  int missing_ = 0;  // ranks without a process
};

// The running job of this user on this node with this --job_id or pid of its fleetrun; "": the only
// one. kNotFound or kUsage, naming `command`, and the jobs that there are.
JobRecord running_job_called(const std::string& name, const std::string& command);

}  // namespace fleet
