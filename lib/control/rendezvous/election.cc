#include "rendezvous/election.h"

#include <utility>

namespace fleet {

bool has_quorum(int nodes, const std::set<int>& present) {
  const int here = static_cast<int>(present.size());
  return 2 * here > nodes || (2 * here == nodes && present.contains(0));
}

FailoverSearch::FailoverSearch(std::vector<bool> can_host, int lost, int self,
                               std::chrono::milliseconds try_for, Time now)
    : can_host_(std::move(can_host)), self_(self), try_for_(try_for) {
  step_.node = lost;
  next(now);
}

FailoverSearch::Step FailoverSearch::next(Time now) {
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

}  // namespace fleet
