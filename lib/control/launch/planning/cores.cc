#include "launch/planning/cores.h"

#include <algorithm>

#include "base/env.h"
#include "base/small_file.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/planning/addresses.h"

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

// --numa_binding.
void bind_near_gpus(const LaunchConfig& config, const LocalRanks& ranks,
                    std::vector<CorePlan>* cores) {
  const std::optional<NumaBinding>& binding = config.numa_binding;
  if (!binding) return;
  const NumaSystem system = numa_system(available_cores());
  const GpuInventory gpus = find_gpus();
  for (size_t rank = 0; rank < cores->size(); ++rank) {
    const bool has_gpu = rank < ranks.devices.size() && !ranks.devices[rank].empty();
    const int visible = has_gpu ? ranks.devices[rank].front() : static_cast<int>(rank);
    CorePlan& own = (*cores)[rank];
    own.cores = cores_near_gpu(system, *binding, number_of_visible_gpu(gpus, visible));
  }
  // Ranks whose GPUs are near the same cores share them.
  for (CorePlan& own : *cores) {
    const auto sharing = std::ranges::count(*cores, own.cores, &CorePlan::cores);
    const int share = static_cast<int>(own.cores.size()) / static_cast<int>(sharing);
    if (own.threads > 1) own.threads = std::max(1, share);
  }
}

// Consecutive cores are not near the GPU of a rank on a machine of several NUMA nodes.
void unpin_from_far_gpus(const LaunchConfig& config, const LocalRanks& ranks,
                         std::vector<CorePlan>* cores) {
  if (config.numa_binding || numa_nodes() < 2) return;
  for (size_t rank = 0; rank < cores->size() && rank < ranks.devices.size(); ++rank) {
    if (!ranks.devices[rank].empty()) (*cores)[rank].cores.clear();
  }
}

// Loopback addresses mean this host, so such nodes share its cores. Other names are not resolved,
// because a job may have thousands.
std::vector<CorePlan> split_cores(const Assignment& assignment) {
  const auto here = [](const wire::Node& node) {
    return node.address() == "localhost" || is_loopback(node.address());
  };
  const wire::Node& node = assignment.node();
  int first = 0, on_host = node.local_world_size();
  if (here(node)) {
    on_host = 0;
    for (const wire::Node& other : assignment.world->nodes()) {
      if (!here(other)) continue;
      if (other.node_rank() == node.node_rank()) first = on_host;
      on_host += other.local_world_size();
    }
  }
  return plan_cores(available_cores(), first, node.local_world_size(), on_host,
                    get_env("OMP_NUM_THREADS").has_value(), cgroup_limits().cpus);
}

// torchrun pins no rank, and gives each of several ranks one thread.
std::vector<CorePlan> torchrun_cores(int local_world_size) {
  const bool limits = local_world_size > 1 && !get_env("OMP_NUM_THREADS");
  return std::vector<CorePlan>(static_cast<size_t>(local_world_size), CorePlan{limits ? 1 : 0, {}});
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

std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides, double quota) {
  std::vector<CorePlan> plans(static_cast<size_t>(ranks));
  if (user_decides) return plans;
  if (quota > 0 && quota < static_cast<double>(available.size())) {
    // Other containers share these cores, each for part of the time. Pinned ranks would all use the
    // first cores.
    for (CorePlan& plan : plans) plan.threads = std::max(1, static_cast<int>(quota / on_host));
    return plans;
  }
  const int each = static_cast<int>(available.size()) / on_host;
  for (int i = 0; i < ranks; ++i) {
    CorePlan& plan = plans[static_cast<size_t>(i)];
    plan.threads = std::max(1, each);
    const auto begin = available.begin() + static_cast<std::ptrdiff_t>(first + i) * each;
    if (each > 0) plan.cores.assign(begin, begin + each);
  }
  return plans;
}

void check_numa_binding(const LaunchConfig& config, const LocalRanks& ranks) {
  std::vector<CorePlan> cores(static_cast<size_t>(ranks.local_world_size));
  bind_near_gpus(config, ranks, &cores);
}

std::vector<CorePlan> cores_of_ranks(const LaunchConfig& config, const LocalRanks& ranks,
                                     const Assignment& assignment) {
  std::vector<CorePlan> cores = config.as_torchrun
                                    ? torchrun_cores(assignment.node().local_world_size())
                                    : split_cores(assignment);
  bind_near_gpus(config, ranks, &cores);
  unpin_from_far_gpus(config, ranks, &cores);
  return cores;
}

}  // namespace fleet
