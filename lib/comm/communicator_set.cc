#include "comm/communicator_set.h"

#include <numeric>

#include "base/log.h"
#include "comm/grouped.h"

namespace fleet {

CommunicatorSet::CommunicatorSet(Communicator* first, int count, int group_size) {
  if (!first) return;
  std::vector<int> ranks(first->size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const bool grouped = group_size > 1 && !sums_inside_hosts_first(*first);
  for (int i = 0; i < count; ++i) {
    Communicator* communicator = first;
    if (i > 0) communicator = split_.emplace_back(first->split(ranks)).get();
    if (grouped) {
      communicator =
          grouped_.emplace_back(GroupedCommunicator::make(*communicator, group_size)).get();
    }
    all_.push_back(communicator);
  }
  if (first->rank() != 0) return;
  if (group_size > 1 && !grouped) {
    spdlog::info("hierarchical allreduce: {} sums inside each host first", first->name());
  }
  if (count > 1 || grouped) {
    spdlog::info("gradients are summed over {} communicators: {}", count, all_[0]->name());
  }
}

}  // namespace fleet
