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
  // Collective over each group's ranks: every rank creates the communicators of its groups in the
  // order of its Program. The first group of all ranks in order uses `job` itself; the others are
  // split from it. RankGroup::inner_group_size > 1 sums within subgroups of that many ranks first
  // (TwoLevelCommunicator), unless the transport already does that for each host. kUsage if
  // inner_group_size does not divide the group, kInternal if a group names a rank that is not in
  // the job.
  CommunicatorSet(const std::vector<RankGroup>& groups, Communicator* job);

  // By GroupId. Null for groups that do not contain this rank and for groups of one rank, whose
  // collectives need no transport.
  const std::vector<Communicator*>& all() const { return all_; }

 private:
  Communicator* make(const RankGroup& group, Communicator& job);

  bool job_taken_ = false;
  std::vector<std::unique_ptr<Communicator>> split_, grouped_;
  std::vector<Communicator*> all_;
};

}  // namespace fleet
