// The jobs of one node from their reservation until they are forgotten: the rules of fleetd,
// without processes, connections or a clock.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/job_info.h"
#include "transport/control_messages.h"

namespace fleet {

using wire::GpuRequest;

// The names of this node's usable GPUs.
std::vector<std::string> visible_gpu_names();

class GpuAllocator {
 public:
  // The GPUs of this node: ids, or their names in CUDA_VISIBLE_DEVICES.
  explicit GpuAllocator(std::vector<std::string> names) : names_(std::move(names)) {}

  // Assigns GPUs to this job; empty if the node has none. Throws kUsage if GPUs do not exist, or,
  // naming the jobs that hold them, if other jobs occupy them.
  std::vector<std::string> allocate(const std::string& job, const GpuRequest& request);
  void release(const std::string& job);

 private:
  bool is_free(const std::string& name) const;
  std::string describe_holders() const;  // "GPUs 0 and 1 are job a's; GPU 2 is job b's"

  std::vector<std::string> names_;
  std::map<std::string, std::set<std::string>> jobs_;  // by GPU
};

using wire::JobRequest;

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
  // `verdict`: verdict.json; "" if none. Forgets a job that was only prepared.
  void on_ended(int number, int code, double now);

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
