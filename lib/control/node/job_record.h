// The jobs that run on this node: every fleetrun keeps a small record file of its job while it
// lives and leaves a final one when it ends. `fleetrun ls`, `logs`, `stacks` and
// `debug` find jobs by it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
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

// The records of this user's running jobs, oldest first, also of those whose file has vanished
// (memory_record.h). The record of a killed fleetrun becomes
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
  // Call it now and then: writes the file again if it has vanished.
  void keep();
  // This node hosts the rendezvous from now on, at this address for other nodes.
  void on_hosting(const std::string& rendezvous);
  // The job has ended: its final record replaces this one, except for a part. `how`: its exit code,
  // and how it was stopped.
  // logs_respond: whether to look for the ends of the logs.
  void end(JobInfo how, bool logs_respond = true);
  const JobRecord& record() const { return record_; }

 private:
  void create();                          // kUsage or kIo
  void write();                           // kUsage or kIo
  void try_to_write(bool clean = false);  // clean: the folder, too

  JobRecord record_;
  std::string path_;
  UniqueFd memory_;  // a copy
  int missing_ = 0;  // ranks without a process
};

// The one of these launchers that the process is or descends from: any process of a job names it.
// -1: none.
pid_t launcher_of_process(pid_t pid, const std::vector<pid_t>& launchers);
// Like launcher_of_process(pid), for the text of a pid.
pid_t launcher_of_process(const std::string& pid, const std::vector<pid_t>& launchers);

// The running job of this user on this node with this --job_id or pid of a process; "": the only
// one. kNotFound or kUsage, naming `command`, and the jobs that there are.
JobRecord running_job_called(const std::string& name, const std::string& command);

// --- Ended jobs: small files in the folder of the records of running ones ---

// For a job whose fleetrun was killed: the end according to its verdict, if it had one.
JobInfo end_of_killed(const JobRecord& record);

// Not synced to the disk. Throws kUsage or kIo if it cannot be written.
void save_ended_job(JobInfo job);

// Whether the end of this run is recorded already.
bool has_ended_record(const JobRecord& record);

// Oldest first. Throws kUsage if the folder belongs to another user.
std::vector<JobInfo> find_ended_jobs();

// The number of records to keep, and their age.
struct EndedJobLimits {
  size_t jobs = 128;  // each node of a job on this host counts
  double seconds = 7 * 86400;
  int64_t bytes = 8 << 20;
};
// Removes records beyond the limits and cleans up after killed fleetruns: their records become
// those of ended jobs, their sockets and unfinished files are removed. Quick: it opens only files
// that it removes.
void clean_runtime_folder(const EndedJobLimits& limits = {});

// --- The outcome of a job, for programs: verdict.json ---

// `world`: the job's; nullptr if it did not run. `unix_time`: when the verdict arrived. `brief`: as
// in MessageStyle.
wire::JobVerdict job_verdict(Verdict verdict, const World* world, double unix_time,
                             bool brief = false);
// `record` describes the job, which need not have the verdict; its id, its run (FLEET_RUN) and when
// this node's part of it started.
Json verdict_json(const wire::JobVerdict& outcome, const JobRecord& record);
// The record's verdict as verdict.json has it: one JSON object. Bytes that are not UTF-8 are
// replaced.
std::string verdict_file_text(const JobRecord& record);

// Suffix of verdicts kept in runtime_folder() because the log folder was not writable.
inline constexpr char kVerdictSuffix[] = ".verdict";

// Writes the record's verdict to LOG_DIR/verdict.json. If that fails (a full disk, a removed
// folder), writes to runtime_folder(), /tmp or the home folder, and a warning names the file.
// Returns the path; "" and an error if all fail. sync: flush it to the disk. *folder_hangs: leaves
// out the log folder; set if its file system does not respond within 15 s.
std::string write_verdict_file(const JobRecord& record, bool sync, bool* folder_hangs);

}  // namespace fleet
