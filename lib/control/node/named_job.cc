#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "node/job_record.h"

namespace fleet {
namespace {

bool same_run(const JobRecord& one, const JobRecord& other) {
  return one.job_id() == other.job_id() && !one.run().empty() && one.run() == other.run();
}

}  // namespace

JobRecord running_job_called(const std::string& name, const std::string& command) {
  std::vector<JobRecord> found;
  std::vector<std::string> names, pids;
  for (JobRecord& job : find_jobs()) {
    names.push_back(job.job_id());
    const bool wanted = name.empty() || job.job_id() == name || std::to_string(job.pid()) == name;
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
