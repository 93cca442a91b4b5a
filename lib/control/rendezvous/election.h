// Decides which nodes continue a job that was partitioned. Pure.
#pragma once

#include <chrono>
#include <set>
#include <vector>

namespace fleet {

// Whether these nodes, given by their ranks in the last generation of `nodes` nodes, may continue
// without the rest: more than half, or exactly half including node 0, which hosted it. Two such
// sets always share a node, so no two parts of a partitioned job can both continue.
bool has_quorum(int nodes, const std::set<int>& present);

// The search for the next host by a node that has lost its own. It tries the nodes of the last
// world in their order, each for some time; at its own turn, this node becomes the host. Nodes may
// try different orders safely, because a host continues only with a quorum.
class FailoverSearch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Step {
    enum class Action { kTry, kHost, kGiveUp } action = Action::kGiveUp;
    int node = -1;  // its rank in the last world
  };

  // All by their ranks in the last world: which nodes can host; the lost host; this node, or -1 if
  // it cannot host.
  FailoverSearch(std::vector<bool> can_host, int lost, int self, std::chrono::milliseconds try_for,
                 Time now);
  Step step() const { return step_; }
  Time deadline() const { return deadline_; }  // of a kTry: call next() then
  Step next(Time now);                         // the one after the node that was tried

 private:
  std::vector<bool> can_host_;
  int self_;
  std::chrono::milliseconds try_for_;
  Step step_;
  Time deadline_;
};

}  // namespace fleet
