// The communicators of a Program's groups.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "graph/program.h"

namespace fleet {

class CommunicatorSet {
 public:
  // `job` is the communicator of all ranks and must outlive the set; null in a job of one rank.
  // Collective over each group's ranks: every rank makes those of its groups in the order in which
  // its Program lists them. The first group of all ranks in their order goes through `job` itself,
  // the others are split from it. RankGroup::first_sum > 1: sums in groups of so many ranks first
  // (GroupedCommunicator), unless the transport does that for each host anyway. kUsage where
  // first_sum does not divide the group, kInternal where a group names a rank the job has not.
  CommunicatorSet(const std::vector<RankGroup>& groups, Communicator* job);

  // By GroupId. Null for groups that this rank is not in, and for those of one rank, whose
  // collectives need no transport.
  const std::vector<Communicator*>& all() const { return all_; }

 private:
  Communicator* make(const RankGroup& group, Communicator& job);

  bool job_taken_ = false;
  std::vector<std::unique_ptr<Communicator>> split_, grouped_;
  std::vector<Communicator*> all_;
};

}  // namespace fleet
