#include "node/named_job.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace fleet {

JobRecord running_job_called(const std::string& name, const std::string& command) {
  std::vector<JobRecord> found;
  std::vector<std::string> names;
  for (JobRecord& job : find_jobs()) {
    names.push_back(job.job_id());
    const bool wanted = name.empty() || job.job_id() == name || std::to_string(job.pid()) == name;
    if (wanted) found.push_back(std::move(job));
  }
  if (found.empty()) {
    throw Error(ErrorCode::kNotFound,
                name.empty() ? "no job of this user runs on this node"
                             : "no job called '" + name + "' of this user runs on this node",
                command,
                names.empty() ? "run it on a node of the job, as the job's user"
                              : "there are: " + join(names, ", "));
  }
  if (found.size() > 1 && (name.empty() || found.front().job_id() != found.back().job_id())) {
    throw Error(ErrorCode::kUsage, "several jobs run on this node", command,
                "name one: " + join(names, ", "));
  }
  return found.front();  // several nodes on one host: any of them can answer
}

}  // namespace fleet
