// The jobs of one node from their reservation until they are forgotten: the rules of fleetd,
// without processes, connections or a clock.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/gpu_allocator.h"
#include "daemon/job_info.h"

namespace fleet {

// A client's request for one node's part of a job.
struct JobRequest {
  std::string job_id;
  int node_rank = 0;
  int nnodes = 1;
  std::string user;                    // user that its commands run as
  std::string folder;                  // working directory
  std::vector<std::string> arguments;  // of fleetrun, before the program
  std::vector<std::string> program;
  std::vector<std::pair<std::string, std::string>> environment;
  GpuRequest gpus;
  std::vector<std::string> nodes;  // every fleetd of the job, by node
  std::string log_dir;             // as in the arguments
  bool restarts = false;           // may continue without a lost node
};

class JobTable {
 public:
  struct Limits {
    size_t max_running = 256;          // jobs at a time
    size_t max_ended = 64;             // ended jobs
    double ended_ttl_seconds = 86400;  // seconds
  };
  // `user`: the user that runs this fleetd.
  JobTable(std::string user, std::vector<std::string> gpus, Limits limits);
  JobTable(std::string user, std::vector<std::string> gpus)
      : JobTable(std::move(user), std::move(gpus), Limits()) {}

  // Reserves a name and GPUs. Throws kUsage if they are not available, or the job is for another
  // user.
  const JobInfo& prepare(const JobRequest& request, double now);
  // Adds a job that ended under an earlier fleetd, unless a job of its name exists.
  void restore(JobInfo job);
  // The methods below use job numbers, because names are reused.
  // The launcher runs.
  void on_launched(int number, pid_t pid, double now);
  // The launcher has written its job record.
  void on_record(int number, const JobRecord& record);
  void on_detached(int number);
  void on_stopping(int number);
  // `verdict`: verdict.json; "" if there is none. Forgets a job that was only prepared.
  void on_ended(int number, int code, const std::string& verdict, double now);

  // nullptr if the job is unknown or forgotten.
  const JobInfo* find(int number) const;
  const JobInfo* find_by_job_id(const std::string& job_id) const;
  const std::vector<JobInfo>& all() const { return jobs_; }  // in order of arrival
  // Forgets jobs beyond the limits, and returns them.
  std::vector<JobInfo> expire(double now);

 private:
  JobInfo* find_mutable(int number);

  std::string user_;
  GpuAllocator gpus_;
  Limits limits_;
  std::vector<JobInfo> jobs_;
  int last_ = 0;
};

}  // namespace fleet
