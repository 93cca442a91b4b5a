// Collects the dumps of PyTorch's flight recorder of this node's ranks (node/flight_search.h) on a
// thread: a disk that does not answer must not keep the guardian from its ranks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/flight_search.h"
#include "rendezvous/event_loop.h"
#include "rendezvous/types.h"

namespace fleet {

// Not thread-safe.
class FlightCollector {
 public:
  using Target = FlightSearch::Target;
  using Done = std::function<void(std::vector<RankCollectives>)>;

  explicit FlightCollector(EventLoop& loop) : timer_(loop) {}
  ~FlightCollector();
  FlightCollector(const FlightCollector&) = delete;
  FlightCollector& operator=(const FlightCollector&) = delete;
  // Calls back once, at the latest after `limit`, with FlightSearch::results(). Does nothing while
  // an earlier call is pending.
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
