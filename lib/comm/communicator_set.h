// The communicators that a step's collectives take turns on.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace fleet {

class CommunicatorSet {
 public:
  // Collective over the ranks of `first`, which must outlive it (null, in a job of one rank: the
  // set is empty). The others are split from it. group_size > 1: each one sums in groups of so many
  // ranks first (GroupedCommunicator), unless its transport does that for each host anyway.
  CommunicatorSet(Communicator* first, int count, int group_size);

  const std::vector<Communicator*>& all() const { return all_; }

 private:
  std::vector<std::unique_ptr<Communicator>> split_, grouped_;
  std::vector<Communicator*> all_;
};

}  // namespace fleet
