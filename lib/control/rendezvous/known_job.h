// A node's knowledge of its job: the last world and whether it counts, its own part in it, and how
// far the job has come. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

class KnownJob {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The world of the first generation counts at once; a later one counts when all its nodes know it
  // (begin()). Returns whether this node should accept it. history: the ends of the earlier
  // generations, for a node that does not know them.
  bool on_assignment(Assignment assignment, int generation,
                     std::vector<GenerationResult> history = {});
  // This node's part in a generation that begins; nullptr: it does not wait for that one.
  const Assignment* begin(int generation, Time now);
  void on_restart(const RestartCommand& command);
  void on_steps(const StepReport& report);
  // The host is lost: the world that this node waits for does not begin. Fills in what the next
  // host needs to know of this node; a spare has no vote.
  void on_host_lost(wire::Join* join);

  // The last world received; nullptr: none. Unpacks it.
  const World* world() const { return world_.get(); }
  int node_rank() const { return node_rank_; }  // in world(); -1: none
  bool is_spare() const { return node_rank_ < 0 && world(); }
  // The last generation that began here.
  const std::optional<Assignment>& begun() const { return begun_; }
  // Whether this node knows enough to host the job from its last world on.
  bool may_host() const;
  // Where a node of the last world hosts the rendezvous, if it does.
  std::string host_address(int node_rank) const;
  // lost, how: the host, by its rank in the last world.
  FailoverState failover_state(int lost, std::string how, Time now) const;

 private:
  bool is_committed() const { return committed_ == world_; }

  SharedWorld world_;      // the last one received
  SharedWorld committed_;  // the last one known to be committed
  int node_rank_ = -1;     // in world_
  std::string address_;    // the host's, which sent world_
  // Of a generation that has not begun. Its number is kept apart so that the world, which may be
  // large, stays packed.
  std::optional<Assignment> pending_;
  int pending_generation_ = 0;
  std::optional<Assignment> begun_;
  Time began_{};
  // The furthest step that this node's ranks have reported in this generation.
  std::optional<int64_t> furthest_step_;
  std::vector<GenerationResult> history_;  // as far as this node has received it
};

}  // namespace fleet
