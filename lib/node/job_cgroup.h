// A cgroup (version 2) of its own for the processes of a job on this node, where this user may make
// one: a second net under the process tree. Killing it ends everything in it in one step, however
// fast it forks; and what is left of a job whose fleetrun and guardian were killed at the same
// moment is found by the next one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleet {

// Where cgroups are: for tests.
struct CgroupFiles {
  std::string mounts = "/proc/self/mountinfo";
  std::string own = "/proc/self/cgroup";
  std::string pid_namespace;  // "": asked for in /proc/self/ns/pid
};

// Not thread safe.
class JobCgroup {
 public:
  explicit JobCgroup(CgroupFiles files = {});
  ~JobCgroup();  // remove()
  JobCgroup(const JobCgroup&) = delete;

  // Makes it, named after this process, and takes care of those that dead ones have left behind.
  // False where that cannot be: why() says it.
  bool make();
  bool there() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }
  // Moves these processes in, with all their threads; what they fork from now on is in it too.
  void take(const std::vector<pid_t>& pids);
  // All processes below this one, and what they fork meanwhile; not the subtrees of `except`.
  void take_descendants(const std::vector<pid_t>& except = {});
  // The processes in it.
  std::vector<pid_t> members() const;
  // SIGKILL for all of them.
  void kill();
  // Once it is empty.
  void remove();

 private:
  CgroupFiles files_;
  std::string path_, why_;
};

// Kills and removes the cgroups whose process is gone. A guardian that was killed leaves one.
void sweep_job_cgroups(const CgroupFiles& files = {});

}  // namespace fleet
