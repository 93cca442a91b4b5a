#include "daemon/gpu_allocator.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "launch/planning/devices.h"

namespace fleet {

bool GpuAllocator::is_free(const std::string& name) const {
  const auto found = jobs_.find(name);
  return found == jobs_.end() || found->second.empty();
}

std::string GpuAllocator::describe_holders() const {
  std::map<std::string, std::vector<std::string>> by_job;
  for (const std::string& name : names_) {
    const auto found = jobs_.find(name);
    if (found == jobs_.end()) continue;
    for (const std::string& job : found->second) by_job[job].push_back(name);
  }
  std::vector<std::string> parts;
  for (const auto& [job, names] : by_job)
    parts.push_back("job '" + job + "' has " + join(names, ","));
  return join(parts, ", ");
}

std::vector<std::string> GpuAllocator::allocate(const std::string& job, const GpuRequest& request) {
  if (names_.empty() || request.none()) return {};
  std::vector<std::string> chosen;
  for (const std::string& name : split(request.names(), ',')) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
      throw Error(ErrorCode::kUsage, "GPU " + name + " does not exist on this node",
                  "--gpus " + request.names(), "this node has " + join(names_, ","));
    }
    chosen.push_back(name);
  }
  const size_t wanted = !chosen.empty()       ? chosen.size()
                        : request.count() > 0 ? static_cast<size_t>(request.count())
                                              : names_.size();
  if (wanted > names_.size()) {
    throw Error(ErrorCode::kUsage, std::to_string(wanted) + " GPUs are requested", {},
                "this node has " + std::to_string(names_.size()));
  }
  if (chosen.empty()) {
    // Choose free GPUs first, in their order.
    std::vector<std::string> order = names_;
    std::stable_partition(order.begin(), order.end(),
                          [this](const std::string& name) { return is_free(name); });
    for (const std::string& name : names_) {
      const auto index = std::find(order.begin(), order.end(), name) - order.begin();
      if (static_cast<size_t>(index) < wanted) chosen.push_back(name);
    }
  }
  const bool free = std::all_of(chosen.begin(), chosen.end(),
                                [this](const std::string& name) { return is_free(name); });
  if (!free && !request.share()) {
    throw Error(
        ErrorCode::kUsage,
        std::to_string(wanted) + " of " + std::to_string(names_.size()) +
            " GPUs are requested, but other jobs occupy some of them: " + describe_holders(),
        {}, "wait for their end, choose others with --gpus, or give --share_gpus");
  }
  for (const std::string& name : chosen) jobs_[name].insert(job);
  return chosen;
}

void GpuAllocator::release(const std::string& job) {
  for (auto& [name, jobs] : jobs_) jobs.erase(job);
}

std::vector<std::string> visible_gpu_names() {
  const GpuInventory inventory = find_gpus();
  if (inventory.visible) return split(*inventory.visible, ',');
  std::vector<std::string> all;
  for (int gpu = 0; gpu < inventory.count; ++gpu) all.push_back(std::to_string(gpu));
  return all;
}

}  // namespace fleet
