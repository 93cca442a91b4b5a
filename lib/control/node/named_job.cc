#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "node/job_record.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

bool same_run(const JobRecord& one, const JobRecord& other) {
  return one.job_id() == other.job_id() && !one.run().empty() && one.run() == other.run();
}

}  // namespace

pid_t launcher_of_process(pid_t pid, const std::vector<pid_t>& launchers) {
  constexpr int kMostParents = 1'000;  // a parent may end, and its pid be given again
  for (int i = 0; i < kMostParents && pid > 0; ++i) {
    if (std::ranges::find(launchers, pid) != launchers.end()) return pid;
    pid = process_stat(pid).value_or(ProcessStat()).parent;
  }
  return -1;
}

pid_t launcher_of_process(const std::string& pid, const std::vector<pid_t>& launchers) {
  long long number = 0;
  if (!parse_int(pid, &number) || number <= 0 || number > std::numeric_limits<pid_t>::max()) {
    return -1;
  }
  return launcher_of_process(static_cast<pid_t>(number), launchers);
}

JobRecord running_job_called(const std::string& name, const std::string& command) {
  std::vector<JobRecord> found, running = find_jobs();
  std::vector<std::string> names, pids;
  std::vector<pid_t> launchers;
  for (const JobRecord& job : running) launchers.push_back(job.pid());
  const pid_t named = launcher_of_process(name, launchers);
  for (JobRecord& job : running) {
    names.push_back(job.job_id());
    const bool wanted = name.empty() || job.job_id() == name || job.pid() == named;
    if (!wanted) continue;
    pids.push_back(std::to_string(job.pid()) + " (" + job.job_id() + ")");
    found.push_back(std::move(job));
  }
  if (found.empty()) {
    for (const JobInfo& ended : find_ended_jobs()) {
      if (name.empty() || ended.record().job_id() != name) continue;
      throw Error(ErrorCode::kNotFound, "the job '" + name + "' has ended", command,
                  "see fleetrun report, and fleetrun logs " + name);
    }
    throw Error(ErrorCode::kNotFound,
                name.empty() ? "no job of this user runs on this node"
                             : "no job called '" + name + "' of this user runs on this node",
                command,
                names.empty() ? "run it on a node of the job, as the job's user"
                              : "there are: " + join(names, ", "));
  }
  // Several nodes of one job on this host: any of them can answer.
  const bool one_job = std::ranges::all_of(
      found, [&](const JobRecord& job) { return &job == &found[0] || same_run(job, found[0]); });
  if (!one_job) {
    throw Error(ErrorCode::kUsage, "several jobs run on this node", command,
                "name one by its pid: " + join(pids, ", "));
  }
  return found.front();
}

}  // namespace fleet
