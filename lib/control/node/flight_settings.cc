#include <algorithm>

#include "base/small_file.h"
#include "base/text.h"
#include "node/flight_dump.h"
#include "node/proc_view.h"

namespace fleet {
namespace {

// Workers of a data loader have the same libraries and environment as the rank itself.
constexpr size_t kMaxProcesses = 16;

// "" if it has ended.
std::string proc_file(pid_t pid, const char* name) {
  return small_file(proc_folder(pid) + "/" + name);
}

// The first of these variables that is set: PyTorch prefers its newer names.
std::string_view first_of(std::string_view block, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string_view value = environment_value(block, name);
    if (!value.empty()) return value;
  }
  return {};
}

}  // namespace

std::string_view environment_value(std::string_view block, std::string_view name) {
  while (!block.empty()) {
    const std::string_view entry = block.substr(0, block.find('\0'));
    block.remove_prefix(std::min(entry.size() + 1, block.size()));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
  }
  return {};
}

FlightSettings flight_settings_in(std::string_view environment, const std::string& folder) {
  FlightSettings settings;
  const auto absolute = [&](std::string_view path) {
    return path.starts_with('/') ? std::string(path) : folder + "/" + std::string(path);
  };
  const std::string_view pipe =
      first_of(environment, {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE"});
  // Without a size, older PyTorch keeps nothing and newer 2,000 calls: the pipe shows which.
  long long size = 1;
  const std::string_view given =
      first_of(environment, {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"});
  const bool off = parse_int(given, &size) && size <= 0;
  settings.has_pipe = !pipe.empty() && !off;
  if (!settings.has_pipe) return settings;
  settings.pipe = absolute(pipe);
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    const std::string_view path = environment_value(environment, name);
    if (!path.empty()) settings.dumps.push_back(absolute(path));
  }
  const std::string_view cache = environment_value(environment, "XDG_CACHE_HOME");
  const std::string_view home = environment_value(environment, "HOME");
  if (!cache.empty() || !home.empty()) {
    const std::string below =
        (cache.empty() ? absolute(home) + "/.cache" : absolute(cache)) + "/torch/";
    for (const char* name : {"comm_lib_trace_rank_", "nccl_trace_rank_"}) {
      settings.dumps.push_back(below + name);
    }
  }
  settings.dumps.emplace_back("/tmp/nccl_trace_rank_");
  long long ranks = 0;
  if (parse_int(environment_value(environment, "WORLD_SIZE"), &ranks) && ranks > 0 &&
      ranks <= 1 << 20) {
    settings.world_size = static_cast<int>(ranks);
  }
  return settings;
}

FlightSettings flight_settings_of(const std::vector<pid_t>& processes) {
  for (size_t i = 0; i < std::min(processes.size(), kMaxProcesses); ++i) {
    const std::string folder = proc_folder(processes[i]) + "/cwd";
    FlightSettings found = flight_settings_in(proc_file(processes[i], "environ"), folder);
    if (found.has_pipe) return found;
  }
  return {};
}

bool uses_torch(const std::vector<pid_t>& processes) {
  for (size_t i = 0; i < std::min(processes.size(), kMaxProcesses); ++i) {
    if (proc_file(processes[i], "maps").find("/libtorch_cuda") != std::string::npos) return true;
  }
  return false;
}

}  // namespace fleet
