// Decides which nodes continue a job that was partitioned. Pure.
#pragma once

#include <chrono>
#include <set>
#include <utility>
#include <vector>

namespace fleet {

// Whether these nodes, given by their ranks in the last generation of `nodes` nodes, may continue
// without the rest: more than half, or exactly half including node 0, which hosted it. Two such
// sets always share a node, so no two parts of a partitioned job can both continue.
inline bool has_quorum(int nodes, const std::set<int>& present) {
  const int here = static_cast<int>(present.size());
  return 2 * here > nodes || (2 * here == nodes && present.contains(0));
}

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
                 Time now)
      : can_host_(std::move(can_host)), self_(self), try_for_(try_for) {
    step_.node = lost;
    next(now);
  }
  Step step() const { return step_; }
  Time deadline() const { return deadline_; }  // of a kTry: call next() then
  // The one after the node that was tried.
  Step next(Time now) {
    const int nodes = static_cast<int>(can_host_.size());
    int node = step_.node + 1;
    while (node < nodes && !can_host_[static_cast<size_t>(node)]) ++node;
    step_.node = node;
    step_.action = node >= nodes   ? Step::Action::kGiveUp
                   : node == self_ ? Step::Action::kHost
                                   : Step::Action::kTry;
    deadline_ = now + try_for_;
    return step_;
  }

 private:
  std::vector<bool> can_host_;
  int self_;
  std::chrono::milliseconds try_for_;
  Step step_;
  Time deadline_;
};

}  // namespace fleet
