// How a rank's PyTorch keeps its flight recorder, by the environment of its processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace fleet {

// The value of a variable in a block of "NAME=VALUE\0" (/proc/PID/environ); "" if it is not set.
std::string_view environment_value(std::string_view block, std::string_view name);

struct FlightSettings {
  bool has_pipe = false;
  std::string pipe;                // without the rank and ".pipe"
  std::vector<std::string> dumps;  // without the rank: where PyTorch may write one, any version
  int world_size = 0;              // 0: unknown
};
// `folder`: of relative paths.
FlightSettings flight_settings_in(std::string_view environment, const std::string& folder);

// The settings of the first of these processes that has a pipe.
FlightSettings flight_settings_of(const std::vector<pid_t>& processes);

// Whether one of these processes has loaded a PyTorch that has the recorder's pipe (NCCL's).
bool uses_torch(const std::vector<pid_t>& processes);

}  // namespace fleet
