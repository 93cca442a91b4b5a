// A separate cgroup (version 2) for the processes of a job on this node, if this user may create
// one: a second safeguard besides the process tree. Killing it ends all its processes in one step,
// however fast they fork. If fleetrun and guardian are killed at the same moment, the next fleetrun
// finds the remains by it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleet {

// The locations of cgroup files; tests replace them.
struct CgroupFiles {
  std::string mounts = "/proc/self/mountinfo";
  std::string own = "/proc/self/cgroup";
  std::string pid_namespace;  // "": read from /proc/self/ns/pid
};

// Not thread-safe.
class JobCgroup {
 public:
  explicit JobCgroup(CgroupFiles files = {});
  ~JobCgroup();  // remove()
  JobCgroup(const JobCgroup&) = delete;

  // Creates the cgroup, named after this process, and removes those of dead processes. Returns
  // false on failure; why() has the reason.
  bool make();
  bool there() const { return !path_.empty(); }
  const std::string& path() const { return path_; }
  const std::string& why() const { return why_; }
  // Moves these processes in, with all their threads; their future children are in it too.
  void take(const std::vector<pid_t>& pids);
  // Moves all descendants of this process in, also those forked during the call; not the subtrees
  // of `except`.
  void take_descendants(const std::vector<pid_t>& except = {});
  // The processes in it.
  std::vector<pid_t> members() const;
  // Sends SIGKILL to all of them.
  void kill();
  // Removes the cgroup once it is empty.
  void remove();

 private:
  CgroupFiles files_;
  std::string path_, why_;
};

// Kills and removes the cgroups of dead processes. A killed guardian leaves one.
void remove_stale_job_cgroups(const CgroupFiles& files = {});

}  // namespace fleet
