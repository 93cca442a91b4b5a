// The stacks of a guardian's ranks, with the collectives and errors that explain them.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "diagnosis/stacks.h"
#include "node/flight_dump.h"
#include "node/guarded_rank.h"
#include "node/stack_collector.h"
#include "transport/event_loop.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class RankStacks {
 public:
  RankStacks(EventLoop& loop, std::function<void(Stacks)> send)
      : collector_(loop), flight_collector_(loop), send_(std::move(send)) {}

  // Sends the stacks once all parts have arrived. A pending answer serves this request too.
  void collect(const wire::CollectStacks& request, const std::vector<GuardedRank>& ranks);

 private:
  void send_collected();

  StackCollector collector_;
  FlightCollector flight_collector_;
  const std::function<void(Stacks)> send_;
  std::optional<Stacks> collected_;  // so far; nullopt: not requested
  int collecting_ = 0;               // parts that are missing in it
};

}  // namespace fleet
