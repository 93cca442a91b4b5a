// What the cgroup of this process may use: `docker --cpus`, `--memory`, a pod's limits.
#pragma once

#include <string>

namespace fleet {

struct CgroupLimits {
  double cpus = 0;       // cores' worth of time; 0: no limit
  long long memory = 0;  // bytes; 0: no limit
};
// The tightest of this process's cgroup and those above it; versions 1 and 2. `root` is before
// /proc and /sys.
CgroupLimits cgroup_limits(const std::string& root = {});

}  // namespace fleet
