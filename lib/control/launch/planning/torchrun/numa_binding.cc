#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/ranges.h"
#include "base/text.h"
#include "launch/planning/cores.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_binding(const std::string& what, const std::string& next) {
  refuse(what, "--numa_binding", next);
}

std::string read_text(const std::string& path) {
  try {
    return std::string(trim(read_file(path)));
  } catch (const Error&) {
    refuse_binding("cannot read " + path, "leave it out on this machine");
  }
}

// Reads "0-3,8" as {0, 1, 2, 3, 8}.
std::set<int> read_list(const std::string& path) {
  std::set<int> numbers;
  for (const std::string& part : split(read_text(path), ',')) {
    long long first = 0, last = 0;
    if (!parse_range(part, &first, &last)) continue;
    for (long long number = first; number <= last; ++number) {
      numbers.insert(static_cast<int>(number));
    }
  }
  return numbers;
}

int read_number(const std::string& path) {
  long long number = 0;
  const std::string text = read_text(path);
  if (!parse_int(text, &number))
    refuse_binding("cannot read " + path, "leave it out on this machine");
  return static_cast<int>(number);
}

// With a single NUMA node, the kernel reports -1.
int node_of_gpu(const NumaSystem& system, int gpu) {
  const std::string& address = system.gpus.at(static_cast<size_t>(gpu));
  return std::max(0, read_number(system.root + "/sys/bus/pci/devices/" + address + "/numa_node"));
}

std::string node_folder(const NumaSystem& system, int node) {
  return system.root + "/sys/devices/system/node/node" + std::to_string(node);
}

std::string cpu_folder(const NumaSystem& system, int cpu) {
  return system.root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
}

// The node's cores that this process may use.
std::vector<int> cores_of_node(const NumaSystem& system, int node) {
  const std::set<int> all = read_list(node_folder(system, node) + "/cpulist");
  std::vector<int> cores;
  for (const int cpu : system.allowed) {
    if (all.contains(cpu)) cores.push_back(cpu);
  }
  return cores;
}

int socket_of(const NumaSystem& system, int cpu) {
  return read_number(cpu_folder(system, cpu) + "/topology/physical_package_id");
}

std::vector<int> cores_of_socket(const NumaSystem& system, int node) {
  const std::vector<int> near = cores_of_node(system, node);
  if (near.empty()) return near;
  const int socket = socket_of(system, near.front());
  std::vector<int> cores;
  for (const int cpu : system.allowed) {
    if (socket_of(system, cpu) == socket) cores.push_back(cpu);
  }
  return cores;
}

// The index of a GPU among those of its NUMA node, and their count.
struct GpuPosition {
  size_t index = 0, count = 0;
};

GpuPosition gpu_position(const NumaSystem& system, int gpu, int node) {
  GpuPosition found;
  for (int other = 0; other < static_cast<int>(system.gpus.size()); ++other) {
    if (node_of_gpu(system, other) != node) continue;
    if (other < gpu) ++found.index;
    ++found.count;
  }
  return found;
}

// If the cores do not divide evenly, the first GPUs get one core more.
std::vector<int> own_share(const NumaSystem& system, int gpu, int node) {
  std::map<int, std::vector<int>> physical;  // by its lowest core
  for (const int cpu : cores_of_node(system, node)) {
    const std::set<int> siblings = read_list(cpu_folder(system, cpu) +
                                             "/topology/"
                                             "thread_siblings_list");
    physical[siblings.empty() ? cpu : *siblings.begin()].push_back(cpu);
  }
  const GpuPosition own = gpu_position(system, gpu, node);
  const size_t each = physical.size() / own.count, more = physical.size() % own.count;
  if (each == 0) {
    refuse_binding("NUMA node " + std::to_string(node) + " has " + std::to_string(physical.size()) +
                       " usable cores and " + std::to_string(own.count) + " GPUs",
                   "use --numa_binding=node");
  }
  const size_t first = own.index * each + std::min(own.index, more);
  const size_t last = first + each + (own.index < more ? 1 : 0);
  std::vector<int> cores;
  size_t at = 0;
  for (const auto& [lowest, threads] : physical) {
    if (at >= first && at < last) cores.insert(cores.end(), threads.begin(), threads.end());
    ++at;
  }
  return cores;
}

// The lowest of the cores that share this core's last-level cache.
int cache_of(const NumaSystem& system, int cpu) {
  int level = -1, lowest = cpu;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cpu_folder(system, cpu) + "/cache", error)) {
    const std::string folder = entry.path().string();
    if (!entry.path().filename().string().starts_with("index")) continue;
    const std::string type = read_text(folder + "/type");
    if (type != "Unified" && type != "Data") continue;
    const int own_level = read_number(folder + "/level");
    const std::set<int> sharing = read_list(folder + "/shared_cpu_list");
    if (own_level <= level || sharing.empty()) continue;
    level = own_level;
    lowest = *sharing.begin();
  }
  return lowest;
}

// Caches with more cores are assigned first.
std::vector<int> own_cache(const NumaSystem& system, int gpu, int node) {
  std::map<int, std::vector<int>> caches;
  for (const int cpu : cores_of_node(system, node)) caches[cache_of(system, cpu)].push_back(cpu);
  if (caches.empty()) return {};
  std::vector<std::vector<int>> sorted;
  for (auto& [lowest, cores] : caches) sorted.push_back(std::move(cores));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return sorted[gpu_position(system, gpu, node).index % sorted.size()];
}

}  // namespace

int numa_nodes(const std::string& root) {
  try {
    const size_t nodes = read_list(root + "/sys/devices/system/node/online").size();
    return std::max(1, static_cast<int>(nodes));
  } catch (const Error&) {
    return 1;
  }
}

NumaSystem numa_system(std::vector<int> allowed, const std::string& root) {
  NumaSystem system{root, std::move(allowed), {}};
  std::sort(system.allowed.begin(), system.allowed.end());
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root + "/proc/driver/nvidia/gpus", none)) {
    system.gpus.push_back(entry.path().filename().string());
  }
  std::sort(system.gpus.begin(), system.gpus.end());
  return system;
}

std::vector<int> cores_near_gpu(const NumaSystem& system, NumaBinding binding, int gpu) {
  if (system.gpus.empty()) {
    refuse_binding("this machine has no NVIDIA GPU", "leave it out");
  }
  if (gpu < 0 || gpu >= static_cast<int>(system.gpus.size())) {
    refuse_binding("GPU " + std::to_string(gpu) + " does not exist on this machine",
                   "start at most one rank per GPU");
  }
  const int node = node_of_gpu(system, gpu);
  std::vector<int> cores = binding == NumaBinding::kNode        ? cores_of_node(system, node)
                           : binding == NumaBinding::kSocket    ? cores_of_socket(system, node)
                           : binding == NumaBinding::kExclusive ? own_share(system, gpu, node)
                                                                : own_cache(system, gpu, node);
  if (cores.empty()) {
    refuse_binding(
        "none of the cores near GPU " + std::to_string(gpu) + " is available to this job",
        "check the cpuset of this job (taskset -p $$)");
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

}  // namespace fleet
