// The dumps of PyTorch's flight recorder, as the ranks' calls of collectives. Format: the pickle of
// FlightRecorder::dump() (torch/csrc/distributed/c10d/FlightRecorderDetail.hpp), version 2.x.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/types.h"
#include "transport/event_loop.h"

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

// --- Collecting the dumps ---

class FlightSearch;

// Collects the dumps of this node's ranks on a thread: a disk that does not answer must not keep
// the guardian from its ranks. Not thread-safe.
class FlightCollector {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;  // global rank
    pid_t pid = -1;
  };
  using Done = std::function<void(std::vector<RankCollectives>)>;

  explicit FlightCollector(EventLoop& loop) : timer_(loop) {}
  ~FlightCollector();
  FlightCollector(const FlightCollector&) = delete;
  FlightCollector& operator=(const FlightCollector&) = delete;
  // Copies whole dumps to `folder`, as flight_recorder_RANK. Calls back once, at the latest after
  // `limit`, with the calls of the PyTorch ranks among the targets, or why they are not known. Does
  // nothing while an earlier call is pending.
  void collect(const std::vector<Target>& targets, const std::string& folder,
               std::chrono::milliseconds limit, Done on_done);

 private:
  void poll_later();
  void poll();

  LoopTimer timer_;
  std::chrono::steady_clock::time_point deadline_;
  std::shared_ptr<FlightSearch> search_;  // shared with its thread; the last one
  Done on_done_;
};

}  // namespace fleet
