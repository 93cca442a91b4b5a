#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/one_line.h"
#include "base/text.h"
#include "daemon/job_info.h"
#include "launch/planning/refuse.h"
#include "node/job_record.h"

namespace fleet {
namespace {

bool same_process(const JobRecord& a, const JobRecord& b) {
  return a.pid() == b.pid() && a.started() == b.started();
}

std::string absolute_folder(const std::string& word) {
  std::error_code gone;
  std::string path = std::filesystem::absolute(word, gone).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return gone ? word : path;
}

using Matches = std::function<bool(const JobRecord&)>;

// The possible matchers of a word, in order of precedence.
std::vector<Matches> matchers(const std::string& word, const std::vector<JobInfo>& jobs) {
  const std::string folder = absolute_folder(word);
  std::vector<pid_t> launchers;
  for (const JobInfo& job : jobs) {
    if (job.phase() != JobInfo::ENDED) launchers.push_back(job.record().pid());
  }
  const pid_t launcher = launcher_of_process(word, launchers);
  return {[&word](const JobRecord& record) { return record.job_id() == word; },
          [&word](const JobRecord& record) { return std::to_string(record.pid()) == word; },
          [launcher](const JobRecord& record) { return record.pid() == launcher; },
          [folder](const JobRecord& record) { return record.log_dir() == folder; },
          [folder](const JobRecord& record) { return record.folder() == folder; }};
}

std::vector<JobInfo> parts_of(const JobInfo& one, const std::vector<JobInfo>& jobs) {
  std::vector<JobInfo> parts;
  for (const JobInfo& job : jobs) {
    if (same_run(job, one)) parts.push_back(job);
  }
  return parts;
}

[[noreturn]] void refuse_ambiguous(const std::string& word, const std::vector<JobInfo>& jobs) {
  std::vector<std::string> names;
  for (const JobInfo& job : jobs) {
    names.push_back(std::to_string(job.record().pid()) + " (logs in " + job.record().log_dir() +
                    ")");
  }
  refuse("several jobs of this name run here, with pid " + join(names, ", "),
         "job " + one_line(word, 100), "select one by its pid or its log folder");
}

}  // namespace

std::vector<JobInfo> local_jobs() {
  std::vector<JobInfo> jobs;
  clean_runtime_folder();
  std::vector<JobRecord> running = find_jobs();
  for (JobInfo& ended : find_ended_jobs()) {
    // It ended after the listing.
    std::erase_if(running, [&](const JobRecord& one) { return same_process(one, ended.record()); });
    jobs.push_back(std::move(ended));
  }
  for (JobRecord& record : running) {
    JobInfo job;
    job.set_phase(record.generation() > 0 ? JobInfo::RUNNING : JobInfo::FORMING);
    *job.mutable_record() = std::move(record);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<JobInfo> find_run(const std::string& word, const std::vector<JobInfo>& jobs) {
  for (const Matches& matches : matchers(word, jobs)) {
    std::vector<JobInfo> running;  // one part of each run
    const JobInfo* newest = nullptr;
    for (const JobInfo& job : jobs) {
      if (!matches(job.record())) continue;
      if (!newest || job.record().started() >= newest->record().started()) newest = &job;
      const bool known = std::any_of(running.begin(), running.end(),
                                     [&](const JobInfo& other) { return same_run(job, other); });
      if (job.phase() != JobInfo::ENDED && !known) running.push_back(job);
    }
    if (running.size() > 1) refuse_ambiguous(word, running);
    if (!running.empty()) return parts_of(running[0], jobs);
    if (newest) return parts_of(*newest, jobs);
  }
  return {};
}

std::optional<JobInfo> refresh(const JobRecord& job) {
  for (JobInfo& now : local_jobs()) {
    if (same_process(now.record(), job)) return std::move(now);
  }
  return std::nullopt;
}

}  // namespace fleet
