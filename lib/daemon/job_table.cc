#include "daemon/job_table.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

}  // namespace

JobTable::JobTable(std::string user, std::vector<std::string> gpus, Limits limits)
    : user_(std::move(user)), gpus_(std::move(gpus)), limits_(limits) {}

JobInfo* JobTable::of(const std::string& job_id) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const JobInfo& job) { return job.record.job_id == job_id; });
  return found == jobs_.end() ? nullptr : &*found;
}

const JobInfo* JobTable::find(const std::string& job_id) const {
  return const_cast<JobTable*>(this)->of(job_id);
}

std::vector<JobInfo> JobTable::all() const { return jobs_; }

const JobInfo& JobTable::prepare(const JobRequest& request, double now) {
  if (!request.user.empty() && request.user != user_) {
    refuse("this fleetd runs the commands of user '" + user_ + "', not of '" + request.user + "'",
           {}, "give --user=" + user_ + ", or start a fleetd of your own on another port");
  }
  if (request.job_id.empty() || request.program.empty()) {
    refuse("a job needs a name and a program", {}, "is the other end fleetrun?");
  }
  const JobInfo* known = find(request.job_id);
  if (known && known->phase != JobPhase::kEnded) {
    refuse("a job of this name is here already (" + std::string(name_of(known->phase)) + ")",
           "job " + request.job_id,
           "give another --job_id, or end it: fleetrun stop " + request.job_id);
  }
  const auto running = std::count_if(
      jobs_.begin(), jobs_.end(), [](const JobInfo& job) { return job.phase != JobPhase::kEnded; });
  if (static_cast<size_t>(running) >= limits_.running) {
    refuse("this fleetd has " + std::to_string(running) + " jobs already", {}, "end some of them");
  }
  JobInfo job;
  job.gpus = gpus_.take(request.job_id, request.gpus);
  job.nodes = request.nodes;
  JobRecord& record = job.record;
  record.job_id = request.job_id;
  record.node_rank = request.node_rank;
  record.nnodes = request.nnodes;
  record.folder = request.folder;
  record.command = request.program;
  record.started = now;
  std::erase_if(jobs_, [&](const JobInfo& old) { return old.record.job_id == request.job_id; });
  jobs_.push_back(std::move(job));
  return jobs_.back();
}

void JobTable::launched(const std::string& job_id, pid_t pid, double now) {
  JobInfo* job = of(job_id);
  if (!job) return;
  job->phase = JobPhase::kForming;
  job->record.pid = pid;
  job->record.started = now;
}

void JobTable::recorded(const std::string& job_id, const JobRecord& record) {
  JobInfo* job = of(job_id);
  if (!job || job->phase == JobPhase::kEnded) return;
  job->record = record;
  if (job->phase == JobPhase::kForming && record.epoch > 0) job->phase = JobPhase::kRunning;
}

void JobTable::detached(const std::string& job_id) {
  if (JobInfo* job = of(job_id)) job->detached = true;
}

void JobTable::stopping(const std::string& job_id) {
  JobInfo* job = of(job_id);
  if (job && job->phase != JobPhase::kEnded) job->phase = JobPhase::kStopping;
}

void JobTable::ended(const std::string& job_id, int code, const std::string& verdict, double now) {
  JobInfo* job = of(job_id);
  if (!job || job->phase == JobPhase::kEnded) return;
  gpus_.give_back(job_id);
  if (job->phase == JobPhase::kPrepared) {
    std::erase_if(jobs_, [&](const JobInfo& old) { return old.record.job_id == job_id; });
    return;
  }
  job->phase = JobPhase::kEnded;
  job->code = code;
  job->verdict = verdict;
  job->ended = now;
}

std::vector<std::string> JobTable::forget(double now) {
  std::vector<std::string> gone;
  auto ended =
      static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const JobInfo& job) {
        return job.phase == JobPhase::kEnded;
      }));
  std::erase_if(jobs_, [&](const JobInfo& job) {
    if (job.phase != JobPhase::kEnded) return false;
    if (ended <= limits_.remembered && now - job.ended <= limits_.remembered_for) return false;
    --ended;
    gone.push_back(job.record.job_id);
    return true;
  });
  return gone;
}

}  // namespace fleet
