// Who goes on when nodes of a job have fallen apart. Pure.
#pragma once

#include <chrono>
#include <set>
#include <vector>

namespace fleet {

// Whether these nodes, by their ranks in the last epoch of `nodes` nodes, may go on without the
// rest: more than half, or exactly half with node 0, which hosted it. Two such sets always have a
// node in common, so no two parts of a job that was cut apart can both go on.
bool has_quorum(int nodes, const std::set<int>& present);

// What a node does that has lost its host: it looks for the next one among the nodes of the last
// world, in their order. Each is tried for some time; when it is this node's own turn, it hosts.
// Others that come to another order of things do no harm: who hosts goes on with a quorum only.
class Succession {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Step {
    enum class What { kTry, kHost, kGiveUp } what = What::kGiveUp;
    int node = -1;  // its rank in the last world
  };

  // By their ranks there: who can host; the host that is lost; this node, -1 where it does not
  // host.
  Succession(std::vector<bool> can_host, int lost, int self, std::chrono::milliseconds try_for,
             Time now);
  Step step() const { return step_; }
  Time deadline() const { return deadline_; }  // of a kTry: then next()
  Step next(Time now);                         // the one after the node that was tried

 private:
  std::vector<bool> can_host_;
  int self_;
  std::chrono::milliseconds try_for_;
  Step step_;
  Time deadline_;
};

}  // namespace fleet
