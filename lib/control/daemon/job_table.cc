#include "daemon/job_table.h"

#include <algorithm>
#include <filesystem>

#include "base/terminal_text.h"
#include "base/text.h"
#include "launch/planning/devices.h"
#include "launch/planning/refuse.h"

namespace fleet {

bool GpuAllocator::is_free(const std::string& name) const {
  const auto found = jobs_.find(name);
  return found == jobs_.end() || found->second.empty();
}

std::string GpuAllocator::describe_holders() const {
  std::map<std::string, std::vector<std::string>> by_job;
  for (const std::string& name : names_) {
    const auto found = jobs_.find(name);
    if (found == jobs_.end()) continue;
    for (const std::string& job : found->second) by_job[job].push_back(name);
  }
  std::vector<std::string> parts;
  for (const auto& [job, names] : by_job)
    parts.push_back("job '" + job + "' has " + join(names, ","));
  return join(parts, ", ");
}

std::vector<std::string> GpuAllocator::allocate(const std::string& job, const GpuRequest& request) {
  if (names_.empty() || request.none()) return {};
  std::vector<std::string> chosen;
  for (const std::string& name : split(request.names(), ',')) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
      refuse("GPU " + name + " does not exist on this node", "--gpus " + request.names(),
             "this node has " + join(names_, ","));
    }
    chosen.push_back(name);
  }
  const size_t wanted = !chosen.empty()       ? chosen.size()
                        : request.count() > 0 ? static_cast<size_t>(request.count())
                                              : names_.size();
  if (wanted > names_.size()) {
    refuse(std::to_string(wanted) + " GPUs are requested", {},
           "this node has " + std::to_string(names_.size()));
  }
  if (chosen.empty()) {
    // Choose free GPUs first, in order.
    std::vector<std::string> order = names_;
    std::stable_partition(order.begin(), order.end(),
                          [this](const std::string& name) { return is_free(name); });
    for (const std::string& name : names_) {
      const auto index = std::find(order.begin(), order.end(), name) - order.begin();
      if (static_cast<size_t>(index) < wanted) chosen.push_back(name);
    }
  }
  const bool free = std::all_of(chosen.begin(), chosen.end(),
                                [this](const std::string& name) { return is_free(name); });
  if (!free && !request.share()) {
    refuse(std::to_string(wanted) + " of " + std::to_string(names_.size()) +
               " GPUs are requested, but other jobs occupy some of them: " + describe_holders(),
           {}, "wait for their end, choose others with --gpus, or give --share_gpus");
  }
  for (const std::string& name : chosen) jobs_[name].insert(job);
  return chosen;
}

void GpuAllocator::release(const std::string& job) {
  for (auto& [name, jobs] : jobs_) jobs.erase(job);
}

std::vector<std::string> visible_gpu_names() {
  const GpuInventory inventory = find_gpus();
  if (inventory.visible) return split(*inventory.visible, ',');
  std::vector<std::string> all;
  for (int gpu = 0; gpu < inventory.count; ++gpu) all.push_back(std::to_string(gpu));
  return all;
}

JobTable::JobTable(std::string user, std::vector<std::string> gpus, Limits limits)
    : user_(std::move(user)), gpus_(std::move(gpus)), limits_(limits) {}

JobInfo* JobTable::find_mutable(int number) {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(),
                                  [&](const JobInfo& job) { return job.number() == number; });
  return found == jobs_.end() ? nullptr : &*found;
}

const JobInfo* JobTable::find(int number) const {
  return const_cast<JobTable*>(this)->find_mutable(number);
}

const JobInfo* JobTable::find_by_job_id(const std::string& job_id) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const JobInfo& job) {
    return job.record().job_id() == job_id;
  });
  return found == jobs_.end() ? nullptr : &*found;
}

const JobInfo& JobTable::prepare(const JobRequest& request, double now) {
  if (!request.user().empty() && request.user() != user_) {
    refuse("this fleetd runs the commands of user '" + user_ + "', not of '" + request.user() + "'",
           {}, "give --user=" + user_ + ", or start your own fleetd on another port");
  }
  if (request.job_id().empty() || request.program().empty()) {
    refuse("a job needs a name and a program", {}, "check that the client is fleetrun");
  }
  const JobInfo* known = find_by_job_id(request.job_id());
  if (known && known->phase() != JobInfo::ENDED) {
    refuse(
        "a job of this name already exists (" + std::string(name_of(known->phase())) + ")",
        "job " + shown_name(request.job_id()),
        "give another --job_id, or stop that job: fleetrun stop " + shown_name(request.job_id()));
  }
  const auto running = std::count_if(
      jobs_.begin(), jobs_.end(), [](const JobInfo& job) { return job.phase() != JobInfo::ENDED; });
  if (static_cast<size_t>(running) >= limits_.max_running) {
    refuse("this fleetd already runs " + std::to_string(running) + " jobs", {},
           "stop some of them");
  }
  JobInfo job;
  job.set_number(++last_);
  for (const std::string& gpu : gpus_.allocate(request.job_id(), request.gpus())) job.add_gpus(gpu);
  *job.mutable_nodes() = request.nodes();
  job.set_node_index(request.node_rank());
  job.set_restarts(request.restarts());
  JobRecord* record = job.mutable_record();
  record->set_job_id(request.job_id());
  record->set_pid(-1);
  record->set_node_rank(request.node_rank());
  record->set_nnodes(request.nnodes());
  record->set_folder(request.folder());
  record->set_log_dir((std::filesystem::path(request.folder()) / request.log_dir()).string());
  *record->mutable_command() = request.program();
  record->set_started(now);
  std::erase_if(jobs_,
                [&](const JobInfo& old) { return old.record().job_id() == request.job_id(); });
  jobs_.push_back(std::move(job));
  return jobs_.back();
}

void JobTable::restore(JobInfo job) {
  if (job.phase() != JobInfo::ENDED || find_by_job_id(job.record().job_id())) return;
  job.set_number(++last_);
  jobs_.push_back(std::move(job));
}

void JobTable::on_launched(int number, pid_t pid, double now) {
  JobInfo* job = find_mutable(number);
  if (!job) return;
  job->set_phase(JobInfo::FORMING);
  job->mutable_record()->set_pid(pid);
  job->mutable_record()->set_started(now);
}

void JobTable::on_record(int number, const JobRecord& record) {
  JobInfo* job = find_mutable(number);
  if (!job || job->phase() == JobInfo::ENDED) return;
  *job->mutable_record() = record;
  if (job->phase() == JobInfo::FORMING && record.generation() > 0) job->set_phase(JobInfo::RUNNING);
}

void JobTable::on_detached(int number) {
  if (JobInfo* job = find_mutable(number)) job->set_detached(true);
}

void JobTable::on_stopping(int number) {
  JobInfo* job = find_mutable(number);
  if (job && job->phase() != JobInfo::ENDED) job->set_phase(JobInfo::STOPPING);
}

void JobTable::on_ended(int number, int code, double now) {
  JobInfo* job = find_mutable(number);
  if (!job || job->phase() == JobInfo::ENDED) return;
  gpus_.release(job->record().job_id());
  if (job->phase() == JobInfo::PREPARED) {
    std::erase_if(jobs_, [&](const JobInfo& old) { return old.number() == number; });
    return;
  }
  job->set_phase(JobInfo::ENDED);
  job->set_code(code);
  job->set_ended(now);
}

std::vector<JobInfo> JobTable::expire(double now) {
  std::vector<JobInfo> expired;
  auto ended =
      static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const JobInfo& job) {
        return job.phase() == JobInfo::ENDED;
      }));
  std::erase_if(jobs_, [&](const JobInfo& job) {
    if (job.phase() != JobInfo::ENDED) return false;
    if (ended <= limits_.max_ended && now - job.ended() <= limits_.ended_ttl_seconds) return false;
    --ended;
    expired.push_back(job);
    return true;
  });
  return expired;
}

}  // namespace fleet
