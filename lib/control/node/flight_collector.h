// Collects the dumps of PyTorch's flight recorder of this node's ranks on a thread: a disk that
// does not answer must not keep the guardian from its ranks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {

class FlightSearch;

// Not thread-safe.
class FlightCollector {
 public:
  struct Target {
    int local_rank = 0;
    int rank = 0;  // of the job
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
