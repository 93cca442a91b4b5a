#include "daemon/job_info.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/json.h"
#include "base/one_line.h"
#include "base/text.h"
#include "launch/planning/refuse.h"
#include "node/job_record.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

Json to_json(const JobInfo& job) {
  const bool ended = job.phase() == JobInfo::ENDED;
  Json all = job_record_json(job.record());
  all["phase"] = name_of(job.phase());
  all["state"] = state_of(job);
  all["nodes"] = texts(job.nodes());
  all["place"] = job.node_index();
  all["gpus"] = texts(job.gpus());
  all["detached"] = job.detached();
  all["restarts"] = job.restarts();
  all["exit_code"] = ended ? Json(job.code()) : Json(nullptr);
  all["ended"] = ended ? Json(job.ended()) : Json(nullptr);
  all["stopped_by"] = job.stopped_by() == 0 ? Json(nullptr) : Json(job.stopped_by());
  all["verdict_path"] = job.verdict_path();
  all["verdict"] = nullptr;
  const JobRecord& record = job.record();
  if (record.has_verdict()) {
    all["verdict"] = verdict_json(record.verdict(), record);
  }
  return all;
}

// Orders phases by progress: a spare node waits while others run.
int stage(JobInfo::Phase phase) {
  const JobInfo::Phase seen = phase == JobInfo::FORMING ? JobInfo::RUNNING : phase;
  return static_cast<int>(seen) * 2 + (phase == JobInfo::FORMING ? 1 : 0);
}

// Ranks parts by their verdict_priority of the outcome: first the part that was last in the job,
// then a part that failed.
std::pair<int, bool> verdict_priority(const JobInfo& job) {
  const JobRecord& record = job.record();
  return {record.has_verdict() ? record.verdict().verdict().generation() : -1, job.code() != 0};
}

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

bool same_run(const JobInfo& a, const JobInfo& b) {
  const JobRecord &one = a.record(), &other = b.record();
  if (one.job_id() != other.job_id() || a.nodes().empty() != b.nodes().empty()) return false;
  if (!a.nodes().empty()) return true;  // a fleetd has only one job per name
  if (!one.run().empty() || !other.run().empty()) return one.run() == other.run();
  return one.pid() == other.pid() && one.started() == other.started();
}

std::vector<std::vector<const JobInfo*>> runs_of(const std::vector<JobInfo>& jobs) {
  std::vector<std::vector<const JobInfo*>> runs;
  for (const JobInfo& job : jobs) {
    const auto known = std::find_if(runs.begin(), runs.end(),
                                    [&](const auto& run) { return same_run(*run.front(), job); });
    known == runs.end() ? runs.push_back({&job}) : known->push_back(&job);
  }
  return runs;
}

const JobInfo& most_informed(const std::vector<const JobInfo*>& parts) {
  return **std::min_element(parts.begin(), parts.end(), [](const JobInfo* a, const JobInfo* b) {
    if (a->phase() != b->phase()) return stage(a->phase()) < stage(b->phase());
    return a->phase() == JobInfo::ENDED && verdict_priority(*a) > verdict_priority(*b);
  });
}

const JobInfo& authoritative_part(const std::vector<JobInfo>& parts) {
  std::vector<const JobInfo*> all;
  for (const JobInfo& part : parts) all.push_back(&part);
  return most_informed(all);
}

std::string state_of(const JobInfo& job) {
  if (job.phase() != JobInfo::ENDED) return name_of(job.phase());
  if (job.killed()) return "killed";
  if (job.code() == 0) return "succeeded";
  const bool decided = job.record().has_verdict();
  const Verdict& verdict = job.record().verdict().verdict();
  int signal = decided && verdict.kind() == Verdict::STOPPED ? verdict.signal() : 0;
  if (!decided && job.code() == 128 + job.stopped_by()) signal = job.stopped_by();
  if (signal != 0) return "stopped (" + signal_name(signal) + ")";
  return "failed (" + std::to_string(job.code()) + ")";
}

const char* name_of(JobInfo::Phase phase) {
  constexpr const char* kNames[] = {"prepared", "waiting for nodes", "running", "stopping",
                                    "ended"};
  return JobInfo::Phase_IsValid(phase) ? kNames[phase] : "unknown";
}

std::string failure_text(const wire::JobVerdict& outcome) {
  return outcome.verdict().kind() == Verdict::STOPPED ? "" : outcome.text();
}

bool node_lost(const wire::JobVerdict& outcome) {
  return outcome.verdict().kind() == Verdict::NODE_LOST;
}

size_t trim_ended_runs(size_t ended, std::vector<JobInfo>* jobs) {
  std::vector<std::pair<double, const JobInfo*>> old;
  for (const auto& run : runs_of(*jobs)) {
    const JobInfo& job = most_informed(run);
    if (job.phase() == JobInfo::ENDED) old.emplace_back(job.ended(), &job);
  }
  if (old.size() <= ended) return 0;
  std::sort(old.begin(), old.end());
  old.resize(old.size() - ended);
  std::vector<JobInfo> kept;
  for (const JobInfo& job : *jobs) {
    const bool is_old = std::any_of(old.begin(), old.end(),
                                    [&](const auto& one) { return same_run(*one.second, job); });
    if (!is_old) kept.push_back(job);
  }
  *jobs = std::move(kept);
  return old.size();
}

std::string jobs_json(const std::vector<JobInfo>& jobs) {
  Json all = Json::array();
  for (const JobInfo& job : jobs) all.push_back(to_json(job));
  return all.dump_lossy(2) + "\n";
}

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
