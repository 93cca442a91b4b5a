// Limits of this process's cgroup: `docker --cpus`, `--memory`, a pod's limits.
#pragma once

#include <string>

namespace fleet {

struct CgroupLimits {
  double cpus = 0;       // cores' worth of time; 0: no limit
  long long memory = 0;  // bytes; 0: no limit
};
// The tightest limits of this process's cgroup and its parents; versions 1 and 2. `root` is the
// prefix of /proc and /sys.
CgroupLimits cgroup_limits(const std::string& root = {});

}  // namespace fleet
