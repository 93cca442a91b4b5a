// Reduce mode: each parameter has an owner among the data-parallel ranks. Its gradient is summed on
// the owner, which alone updates it and sends it to the others.
#pragma once

#include <map>
#include <vector>

#include "passes/buckets.h"
#include "passes/pass.h"

namespace fleet {

// Place of the owner in the group of ranks, by parameter.
using Owners = std::map<VarId, int>;

// In the order in which the backward pass completes gradients, each parameter goes to the rank that
// has the fewest bytes so far, the lowest of several: alike on every rank. Needs the backward pass.
Owners assign_owners(const Program& program, int ranks);

// What joins parameters into messages and where those are; `group` are the ranks, in their order.
struct OwnerMessages {
  GroupId group = -1;
  int stream = kCommunicationStream;
  bool fuse = true;           // gradients of one owner and bucket travel together
  BucketLimits buckets = {};  // as of allreduces
  SectionId section = -1;     // of the sums; -1: that of what computes a gradient
};

// Inserts the sums of gradients, each behind the operation that computes its last gradient. Returns
// how many.
int reduce_to_owners(Program& program, const Owners& owners, const OwnerMessages& messages);

// Leaves this rank (its place in the group) the updates of its own parameters in section
// `optimize`. Updates of other ranks' go to a section of a flag that nobody sets, and so does what
// only they read: every rank's Program has the same operations, and so the same layouts and, in
// what ranks allocate together, the same memory. (Of a section that says that it never runs the
// Plan would know that its inputs need no memory.) States
// are all there; those of other ranks' parameters are up to date behind a sync (evaluation and
// saving), in which owners send them. With global_norm the ranks add up the squares of what they
// own.
void update_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                      bool global_norm, const OwnerMessages& messages);

// Looks for gradients that are not finite on their owners, and combines what they found.
void check_on_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                     const OwnerMessages& messages);

// Appends the messages from owners behind the updates: with `fuse` one an owner. Copies in a low
// type are made from what came. Returns how many.
int broadcast_from_owners(Program& program, SectionId optimize, const Owners& owners, int place,
                          bool fuse, const OwnerMessages& messages);

}  // namespace fleet
