#include "launch/planning/devices.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/counted.h"
#include "base/text.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// The entries of a folder named `prefix` and a number; every entry if `prefix` is empty.
std::vector<std::string> entries(const char* folder, std::string_view prefix) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    long long number = 0;
    if (!name.starts_with(prefix)) continue;
    if (prefix.empty() || parse_int(name.substr(prefix.size()), &number)) {
      found.push_back(entry.path().string());
    }
  }
  return found;
}

// The ids that CUDA_VISIBLE_DEVICES lists, or 0 to count - 1.
std::vector<std::string> visible_gpus(const GpuInventory& gpus) {
  std::vector<std::string> all;
  if (!gpus.visible) {
    for (int i = 0; i < gpus.count; ++i) all.push_back(std::to_string(i));
    return all;
  }
  for (const std::string& id : split(*gpus.visible, ',')) {
    long long number = 0;
    // Like CUDA, ignore the rest of the list after the first bad entry; -1 is the usual "none".
    const bool valid = parse_int(id, &number) ? number >= 0 && number < gpus.count
                                              : id.starts_with("GPU-") || id.starts_with("MIG-");
    if (!valid) break;
    all.push_back(id);
  }
  if (gpus.count == 0) all.clear();
  return all;
}

using GpuNames = Sourced<std::vector<std::string>>;

[[noreturn]] void bad_gpus(const GpuNames& wanted, const std::string& what,
                           const std::string& next) {
  refuse(what, wanted.with(join(wanted.value, ",")), next);
}

int index_of(const GpuNames& wanted, const std::string& id, const std::vector<std::string>& visible,
             bool numbered) {
  long long number = 0;
  if (!parse_int(id, &number) || number < 0) {
    bad_gpus(wanted, "'" + id + "' is not the number of a GPU", "write it like --gpus=0,1");
  }
  if (!numbered) {  // UUIDs: the number can only be a position in the list
    if (number < static_cast<long long>(visible.size())) return static_cast<int>(number);
  } else if (const auto found = std::find(visible.begin(), visible.end(), std::to_string(number));
             found != visible.end()) {
    return static_cast<int>(found - visible.begin());
  }
  bad_gpus(wanted, "GPU " + id + " is not visible",
           "visible GPUs: " + join(visible, ",") + (numbered ? "" : " (numbered from 0)") +
               "; see CUDA_VISIBLE_DEVICES");
}

std::vector<int> chosen_gpus(const GpuNames& wanted, const GpuInventory& gpus) {
  const std::vector<std::string> visible = visible_gpus(gpus);
  std::vector<int> chosen;
  if (wanted.value.empty()) {
    for (size_t i = 0; i < visible.size(); ++i) chosen.push_back(static_cast<int>(i));
    return chosen;
  }
  if (visible.empty()) {
    bad_gpus(wanted,
             gpus.count == 0 ? "this machine has no NVIDIA GPU"
                             : "CUDA_VISIBLE_DEVICES hides every GPU of this machine",
             "leave --gpus out to run --nproc_per_node ranks on the CPUs");
  }
  const bool numbered = std::all_of(visible.begin(), visible.end(), [](const std::string& id) {
    long long number = 0;
    return parse_int(id, &number);
  });
  for (const std::string& id : wanted.value) {
    const int index = index_of(wanted, id, visible, numbered);
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) {
      bad_gpus(wanted, "GPU " + id + " is listed twice", "list each GPU once");
    }
    chosen.push_back(index);
  }
  return chosen;
}

// Keeps as many of the node's GPUs as --ips gives it.
void keep_listed(const LaunchConfig& config, size_t listed, std::vector<int>* chosen) {
  const auto wrong = [&](const std::string& what, const std::string& next) {
    refuse(what, config.nodes.listed.with(std::to_string(listed)), next);
  };
  const std::optional<int>& local_world_size = config.local_world_size.value;
  if (chosen->empty()) {
    if (!local_world_size || static_cast<size_t>(*local_world_size) == listed) return;
    wrong("it contradicts --nproc_per_node=" + std::to_string(*local_world_size) +
              " on this node, which has no GPU",
          "give only one of them");
  }
  if (config.gpus.given() && chosen->size() != listed) {
    wrong("it contradicts --gpus=" + join(config.gpus.value, ","), "give only one of them");
  }
  if (chosen->size() < listed) {
    wrong("this node has only " + counted(static_cast<int64_t>(chosen->size()), "GPU") + " to use",
          "correct the list, or check CUDA_VISIBLE_DEVICES");
  }
  chosen->resize(listed);
}

// Whether there may be more ranks than GPUs: an option of another launcher gave their number, and
// its programs use no GPU, or share them.
bool may_outnumber(const Sourced<std::optional<int>>& ranks) {
  return ranks.by_flag() && ranks.origin != "--nproc_per_node";
}

// torchrun's rule: a rank takes the GPU of its own number. If there are too few GPUs, no rank gets
// one.
std::vector<std::vector<int>> devices_by_local_rank(const std::vector<int>& chosen, size_t ranks) {
  std::vector<std::vector<int>> devices(ranks);
  for (size_t rank = 0; rank < ranks && ranks <= chosen.size(); ++rank) {
    devices[rank] = {chosen[rank]};
  }
  return devices;
}

}  // namespace

GpuInventory find_gpus() {
  GpuInventory gpus;
  const std::vector<std::string> nodes = entries("/dev", "nvidia");
  for (const std::string& node : nodes) gpus.count += ::access(node.c_str(), R_OK | W_OK) == 0;
  if (nodes.empty()) gpus.count = static_cast<int>(entries("/proc/driver/nvidia/gpus", "").size());
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) gpus.visible = visible;
  return gpus;
}

int visible_gpu_count(const GpuInventory& gpus) {
  return static_cast<int>(visible_gpus(gpus).size());
}

int number_of_visible_gpu(const GpuInventory& gpus, int index) {
  const std::vector<std::string> visible = visible_gpus(gpus);
  long long number = index;
  if (index < static_cast<int>(visible.size()) &&
      !parse_int(visible[static_cast<size_t>(index)], &number)) {
    refuse("it lists GPUs by UUID, not by number", "environment CUDA_VISIBLE_DEVICES",
           "list numbers, or leave --numa_binding out");
  }
  return static_cast<int>(number);
}

std::string visible_devices_of(const GpuInventory& gpus, const std::vector<int>& indices) {
  const std::vector<std::string> listed = split(gpus.visible.value_or(""), ',');
  std::vector<std::string> ids;
  for (const int index : indices) {
    const auto position = static_cast<size_t>(index);
    if (!gpus.visible) ids.push_back(std::to_string(index));
    if (position < listed.size()) ids.push_back(listed[position]);
  }
  return join(ids, ",");
}

std::vector<int> unreadable_gpus() {
  constexpr std::string_view prefix = "/dev/nvidia";
  std::vector<int> numbers;
  for (const std::string& node : entries("/dev", "nvidia")) {
    long long number = 0;
    if (::access(node.c_str(), R_OK | W_OK) != 0 &&
        parse_int(std::string_view(node).substr(prefix.size()), &number)) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

LocalRanks local_ranks(const LaunchConfig& config, const GpuInventory& gpus, int listed) {
  std::vector<int> chosen = chosen_gpus(config.gpus, gpus);
  if (listed > 0) keep_listed(config, static_cast<size_t>(listed), &chosen);
  LocalRanks all;
  const int by_default = chosen.empty() ? std::max(listed, 1) : static_cast<int>(chosen.size());
  all.local_world_size = config.local_world_size.value.value_or(by_default);
  const auto ranks = static_cast<size_t>(all.local_world_size);
  const bool unequal = chosen.size() % ranks != 0;
  const bool allowed =
      ranks > chosen.size() ? may_outnumber(config.local_world_size) : !config.gpus.given();
  if (config.as_torchrun || chosen.empty() || (unequal && allowed)) {
    all.devices = devices_by_local_rank(chosen, ranks);
    return all;
  }
  if (unequal) {
    refuse(counted(static_cast<int64_t>(chosen.size()), "GPU") + " cannot be divided among " +
               counted(all.local_world_size, "rank"),
           config.local_world_size.with(std::to_string(ranks)),
           "choose GPUs with --gpus; or set CUDA_VISIBLE_DEVICES= to run on the CPUs");
  }
  const size_t each = chosen.size() / ranks;
  for (auto first = chosen.begin(); first != chosen.end(); first += static_cast<long>(each)) {
    all.devices.emplace_back(first, first + static_cast<long>(each));
  }
  return all;
}

std::vector<std::vector<int>> devices_of_roles(const LaunchConfig& config, int servers,
                                               int trainers, const GpuInventory& gpus) {
  std::vector<std::vector<int>> all(static_cast<size_t>(servers));
  LaunchConfig of_trainers = config;
  of_trainers.local_world_size.value = trainers;
  if (config.gpus.given() && trainers > 0) {
    const std::vector<std::vector<int>> own = local_ranks(of_trainers, gpus).devices;
    all.insert(all.end(), own.begin(), own.end());
  }
  all.resize(static_cast<size_t>(servers + trainers));
  return all;
}

std::string local_rank_warning(const LaunchConfig& config, const LocalRanks& ranks,
                               const GpuInventory& gpus) {
  const auto& dialects = config.dialects;
  if (!config.gpus.given() || config.virtual_local_rank ||
      std::find(dialects.begin(), dialects.end(), "torch") == dialects.end()) {
    return {};
  }
  std::vector<int> chosen, taken;
  for (const std::vector<int>& own : ranks.devices) {
    if (!own.empty()) taken.push_back(static_cast<int>(taken.size()));
    chosen.insert(chosen.end(), own.begin(), own.end());
  }
  const auto is_chosen = [&](int index) {
    return std::find(chosen.begin(), chosen.end(), index) != chosen.end();
  };
  if (std::all_of(taken.begin(), taken.end(), is_chosen)) return {};
  return config.gpus.with(join(config.gpus.value, ",")) +
         " hides no GPU: a program that uses the GPU of its LOCAL_RANK, as PyTorch programs do, "
         "takes " +
         (taken.size() == 1 ? "GPU " : "GPUs ") + visible_devices_of(gpus, taken) +
         "; for such a program, set CUDA_VISIBLE_DEVICES=" + visible_devices_of(gpus, chosen) +
         " instead";
}

}  // namespace fleet
