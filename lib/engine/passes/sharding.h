// Sharding: parameters, optimizer states and accumulated gradients live on the parameter's owner
// only.
#pragma once

#include <map>
#include <vector>

#include "passes/owners.h"

namespace fleet {

// Parameters: the others fetch them for the part of a step that reads them.
struct FetchOptions {
  GroupId group = -1;
  int stream = kCommunicationStream;
  int place = 0;            // index of this rank in the group
  double megabytes = 32;    // a segment is closed once it holds this much
  SectionId optimize = -1;  // the updates'
  SectionId remote = -1;    // operations that only other ranks run, when updates run
  std::vector<int> savers;  // by index in the group: the rank of the job that saves what it owns
};

// Cuts the reads of parameters in each section into segments, in the order of use. Before a
// segment, its parameters (or their copies in a low type) are sent from their owners into
// temporaries, which the section's operations read instead. A segment is sent while the previous
// one computes, and not earlier, so that two of them are in memory at a time. Runs after the
// updates were appended. kUnsupported if another operation needs whole parameters. Returns the
// number of segments in a training step.
int fetch_parameters(Program& program, const Owners& owners, const FetchOptions& options);

// Optimizer states and accumulated gradients.
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
