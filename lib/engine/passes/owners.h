// Reduce mode and sharding: each parameter has an owner among the ranks of a group. Its gradient is
// summed on the owner, which alone updates the parameter.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "passes/gradients.h"
#include "passes/pass.h"

namespace fleet {

// By parameter: index of the owner in the group of ranks.
using Owners = std::map<VarId, int>;

// In the order in which the backward pass completes gradients, each parameter goes to the rank with
// the fewest bytes so far, the lowest on a tie: identical on every rank. Needs the backward pass.
Owners assign_owners(const Program& program, int ranks);

// Neighbouring parameters, in order of creation, have the same owner, as in Paddle's sharding; the
// rank with the most bytes has as few as possible. trained_later: parameters without a gradient
// that count too, so that a parameter has the same owner in all Programs of a job. Needs the
// backward pass.
Owners assign_contiguous_owners(const Program& program, int ranks,
                                const std::set<VarId>& trained_later = {});

// How parameters are merged into messages and where the messages are inserted; `group` holds the
// ranks, in order.
struct OwnerMessages {
  GroupId group = -1;
  int stream = kCommunicationStream;
  bool fuse = true;           // gradients of one owner and bucket share a message
  BucketLimits buckets = {};  // as for allreduces
  SectionId section = -1;     // the sums'; -1: the section that computes the gradient
};

// Inserts the sums of gradients, each after the operation that computes its last gradient. Returns
// the number of sums.
int reduce_to_owners(Program& program, const Owners& owners, const OwnerMessages& messages);

// With clipping by the global norm: the ranks add up the squares of the gradients they own.
void combine_norm(Program& program, SectionId optimize, const Owners& owners, int place,
                  const OwnerMessages& messages);

// Moves the updates of other ranks' parameters from one section to another, and operations that
// only they read.
void move_foreign_updates(Program& program, SectionId from, SectionId to, const Owners& owners,
                          int place);

// By parameter: the states that its update writes, without a copy in a low type.
std::map<VarId, std::vector<VarId>> states_of_updates(const Program& program);

// Leaves only the updates of this rank's own parameters (`place`: its index in the group) in
// section `optimize`. Updates of other ranks' parameters go to a section whose flag is never set,
// and so do operations that only they read. Every rank's Program thus has the same operations, the
// same layouts and the same jointly allocated memory. (If the section's predicate were never true,
// the Plan would know that its inputs need no memory.) All states exist on every rank; those of
// other ranks' parameters are current after a sync (evaluation and saving), in which owners send
// them. With global_norm the ranks add up the squares of the gradients they own.
void update_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                      bool global_norm, const OwnerMessages& messages);

// Checks gradients for non-finite values on their owners, and combines the results.
void check_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                     const OwnerMessages& messages);

// Appends the messages from owners after the updates; with `fuse`, one per owner. A parameter of
// trained_later lies between its neighbours in memory, so a message ends in front of it. Copies in
// a low type are made from the received values. Returns the number of messages.
int broadcast_from_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                          bool fuse, const OwnerMessages& messages,
                          const std::set<VarId>& trained_later = {});

}  // namespace fleet
