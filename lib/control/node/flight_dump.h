// A dump of PyTorch's flight recorder as a rank's calls of collectives. Format: the pickle of
// FlightRecorder::dump() (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp), version 2.x.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

inline constexpr int64_t kMaxFlightDump = int64_t{64} << 20;  // bytes

// The rank that wrote a dump, and when it is read.
struct FlightRank {
  int rank = 0;
  int world_size = 0;     // 0: unknown
  int64_t unix_time = 0;  // ns
};

// The groups of the rank, each with the calls around the first that is not done. The caller sets
// local_rank and state. Nothing in the dump is executed. kUsage naming the path if it is not a
// whole dump.
RankCollectives calls_of_flight_dump(std::string_view bytes, const std::string& path,
                                     const FlightRank& of);

// --- How a rank's PyTorch keeps its flight recorder, by the environment of its processes ---

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
