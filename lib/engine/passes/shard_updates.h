// Sharding of optimizer states and of accumulated gradients: only the owner of a parameter has
// them.
#pragma once

#include <map>
#include <vector>

#include "passes/owners.h"

namespace fleet {

struct Shard {
  int place = 0;            // index of this rank in the group
  std::vector<int> savers;  // by index in the group: the rank of the job that saves what it owns
};

// Moves the updates of other ranks' parameters to section `remote`, and leaves their states
// without memory.
void shard_updates(Program& program, SectionId optimize, SectionId remote, const Owners& owners,
                   const Shard& shard);

// After each sum on an owner: that owner sums it over `copies` too, the ranks of other groups that
// own the same. Runs after reduce_to_owners().
void sum_over_copies(Program& program, int place, GroupId copies, const OwnerMessages& messages);

// Computation waits before it runs more than one message ahead of the sums: the memory of gradients
// that were sent is then free for others. Runs after the sums were inserted.
void limit_unsent_gradients(Program& program, const OwnerMessages& messages);

// Every step adds the sums of gradients to float32 accumulators on their owners, which replace the
// gradients. Returns them by parameter. Runs after the sums were inserted.
std::map<VarId, VarId> accumulate_on_owners(Program& program, const Owners& owners,
                                            const Shard& shard);
// Appends the reset of accumulators to `optimize`; of other ranks' to `remote`.
void reset_accumulators(Program& program, const std::map<VarId, VarId>& accumulators,
                        SectionId optimize, SectionId remote);

}  // namespace fleet
