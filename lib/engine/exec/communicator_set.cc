#include "exec/communicator_set.h"

#include <algorithm>

#include "base/log.h"
#include "comm/two_level.h"

namespace fleet {
namespace {

bool all_in_order(const std::vector<int>& ranks, int size) {
  if (static_cast<int>(ranks.size()) != size) return false;
  for (int i = 0; i < size; ++i) {
    if (ranks[i] != i) return false;
  }
  return true;
}

}  // namespace

CommunicatorSet::CommunicatorSet(const std::vector<RankGroup>& groups, Communicator* job) {
  const int size = job ? job->size() : 1, rank = job ? job->rank() : 0;
  for (const RankGroup& group : groups) {
    for (const int member : group.ranks) {
      FLEET_CHECK(member >= 0 && member < size,
                  group.text() + ", of a job of " + std::to_string(size) + " ranks");
    }
    const bool member = std::count(group.ranks.begin(), group.ranks.end(), rank) > 0;
    all_.push_back(member && group.ranks.size() > 1 ? make(group, *job) : nullptr);
    Communicator* made = all_.back();
    if (made) made->set_group_name(group.name);
    if (made && made != job && made->rank() == 0) {
      spdlog::info("communicator {}: {}, {} ranks, {}", all_.size() - 1, group.name, made->size(),
                   made->name());
    }
  }
}

Communicator* CommunicatorSet::make(const RankGroup& group, Communicator& job) {
  Communicator* communicator = &job;
  if (job_taken_ || !all_in_order(group.ranks, job.size())) {
    communicator = split_.emplace_back(job.split(group.ranks)).get();
  } else {
    job_taken_ = true;
  }
  if (group.inner_group_size <= 1) return communicator;
  if (reduces_within_hosts_first(*communicator)) {
    if (communicator->rank() == 0) {
      spdlog::info("hierarchical allreduce: {} sums inside each host first", communicator->name());
    }
    return communicator;
  }
  return grouped_.emplace_back(TwoLevelCommunicator::make(*communicator, group.inner_group_size))
      .get();
}

}  // namespace fleet
