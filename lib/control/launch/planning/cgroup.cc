#include "launch/planning/cgroup.h"

#include <algorithm>

#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

// The number; 0 for "max" and any other text.
long long number(const std::string& text) {
  long long value = 0;
  return parse_int(text, &value) && value > 0 ? value : 0;
}

template <typename T>
void tighten(T limit, T* least) {
  if (limit > 0 && (*least == 0 || limit < *least)) *least = limit;
}

// `cpu`, `memory`: which controllers the folder has.
void read_folder(const std::string& folder, bool cpu, bool memory, CgroupLimits* limits) {
  if (memory) {
    // Cgroup version 1 writes "no limit" as a number near 2^63.
    constexpr long long kNoLimit = 1LL << 60;
    long long limit = number(small_file(folder + "/memory.max"));
    if (limit == 0) limit = number(small_file(folder + "/memory.limit_in_bytes"));
    if (limit < kNoLimit) tighten(limit, &limits->memory);
  }
  if (!cpu) return;
  const std::vector<std::string> max = split(small_file(folder + "/cpu.max"), ' ');
  long long quota = max.size() == 2 ? number(max[0]) : 0;
  long long period = max.size() == 2 ? number(max[1]) : 0;
  if (quota == 0) {
    quota = number(small_file(folder + "/cpu.cfs_quota_us"));
    period = number(small_file(folder + "/cpu.cfs_period_us"));
  }
  if (quota > 0 && period > 0) {
    tighten(static_cast<double>(quota) / static_cast<double>(period), &limits->cpus);
  }
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const std::string mount = root + "/sys/fs/cgroup";
  for (const std::string& line : split(small_file(root + "/proc/self/cgroup"), '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = split(controllers, ',');
    const bool unified = controllers.empty();
    const bool cpu = unified || std::ranges::find(names, "cpu") != names.end();
    const bool memory = unified || std::ranges::find(names, "memory") != names.end();
    if (!memory && !cpu) continue;
    const std::string base = mount + (unified ? "" : cpu ? "/cpu" : "/memory");
    // In a container the path may be the host's, while only the container's part is mounted.
    // Missing folders are ignored.
    for (std::string path = line.substr(second + 1);; path = path.substr(0, path.rfind('/'))) {
      read_folder(base + (path == "/" ? "" : path), cpu, memory, &limits);
      if (path.empty() || path == "/") break;
    }
  }
  return limits;
}

}  // namespace fleet
