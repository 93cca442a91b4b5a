#include "launch/starting/shared_console.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "launch/planning/slurm.h"
#include "node/console.h"
#include "node/job_record.h"

namespace fleet {
namespace {

bool is_regular_file(int fd) {
  struct stat status;
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

bool under_ssh() {
  return get_env("SSH_CONNECTION") && !get_env("SSH_TTY") && ::isatty(STDERR_FILENO) != 1;
}

bool has_my_standard_error(pid_t launcher) {
  struct stat mine, theirs;
  const std::string path = "/proc/" + std::to_string(launcher) + "/fd/2";
  return ::fstat(STDERR_FILENO, &mine) == 0 && ::stat(path.c_str(), &theirs) == 0 &&
         mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

bool is_on_this_host(const Assignment& assignment, int node_rank) {
  const wire::Node& node = assignment.world->nodes(node_rank);
  return !node.hostname().empty() && node.hostname() == assignment.node().hostname();
}

// Node ranks of the job's other launchers on this host that write to the same place.
std::vector<int> others_here(const LaunchPlan& plan, const Assignment& assignment) {
  std::vector<int> ranks;
  bool any = false;
  for (int node = 0; node < assignment.node_rank; ++node) {
    any = any || is_on_this_host(assignment, node);
  }
  if (!any) return ranks;
  try {
    for (const JobRecord& job : find_jobs()) {
      const bool other = job.pid() != ::getpid() && job.job_id() == plan.config().job_id.value;
      if (other && has_my_standard_error(job.pid())) ranks.push_back(job.node_rank());
    }
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
  return ranks;
}

}  // namespace

bool speaks_for_job(const ConsoleFacts& facts) {
  if (facts.node_rank == 0) return true;
  if (facts.part) return false;
  if ((facts.in_step || facts.through_ssh) && !facts.is_file) return false;
  return std::ranges::none_of(facts.same, [&](int rank) { return rank < facts.node_rank; });
}

ConsoleFacts console_facts(const LaunchPlan& plan, const Assignment& assignment) {
  return {.node_rank = assignment.node_rank,
          .part = plan.config().part,
          .in_step = in_slurm_step(get_env),
          .through_ssh = under_ssh(),
          .is_file = is_regular_file(STDERR_FILENO),
          .same = others_here(plan, assignment)};
}

ShownOutput shown_output(const LaunchPlan& plan) {
  // srun passes on both streams of every node, by default to one place.
  const bool step = in_slurm_step(get_env) && !plan.topology.is_single_node();
  if (step && !is_regular_file(STDERR_FILENO)) return ShownOutput::kOfAllNodes;
  return same_destination(STDOUT_FILENO, STDERR_FILENO) ? ShownOutput::kOfThisNode
                                                        : ShownOutput::kNone;
}

}  // namespace fleet
