// The jobs of one node, from their reservation until they are forgotten: the rules of fleetd,
// without processes, connections or a clock of its own.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/gpu_table.h"
#include "daemon/job_info.h"

namespace fleet {

// One node's part of a job, as its client wants it.
struct JobRequest {
  std::string job_id;
  int node_rank = 0;
  int nnodes = 1;
  std::string user;                    // who its commands are to run as
  std::string folder;                  // working directory
  std::vector<std::string> arguments;  // of fleetrun, before the program
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> environment;
  GpuWish gpus;
  std::vector<std::string> nodes;  // every fleetd of the job, by node
  std::string log_dir;             // as in the arguments
  bool restarts = false;           // it may go on without a node that is lost
};

class JobTable {
 public:
  struct Limits {
    size_t running = 256;           // jobs at a time
    size_t remembered = 64;         // jobs that have ended
    double remembered_for = 86400;  // seconds
  };
  // `user`: whom this fleetd runs as.
  JobTable(std::string user, std::vector<std::string> gpus, Limits limits);
  JobTable(std::string user, std::vector<std::string> gpus)
      : JobTable(std::move(user), std::move(gpus), Limits()) {}

  // Reserves a name and GPUs. kUsage where they are not to be had, or the job is another user's.
  const JobInfo& prepare(const JobRequest& request, double now);
  // A job that has ended under an earlier fleetd. Where there is one of its name, nothing.
  void remember(JobInfo job);
  // Jobs go by their number: a name may be another job's meanwhile.
  // Its launcher runs.
  void launched(int number, pid_t pid, double now);
  // What the launcher says of itself.
  void recorded(int number, const JobRecord& record);
  void detached(int number);
  void stopping(int number);
  // `verdict`: verdict.json; "" where there is none. A job that was only prepared is forgotten at
  // once.
  void ended(int number, int code, const std::string& verdict, double now);

  // nullptr where it is not known (any more).
  const JobInfo* find(int number) const;
  const JobInfo* named(const std::string& job_id) const;
  const std::vector<JobInfo>& all() const { return jobs_; }  // in the order in which they came
  // Forgets what is too old or too much; what that was.
  std::vector<JobInfo> forget(double now);

 private:
  JobInfo* of(int number);

  std::string user_;
  GpuTable gpus_;
  Limits limits_;
  std::vector<JobInfo> jobs_;
  int last_ = 0;
};

}  // namespace fleet
