// Code that the collective operations share: their group and their common attributes.
#pragma once

#include "graph/program.h"

namespace fleet {

// The trait of collectives: the group's ranks synchronize in them, so ranks compare their order
// before step 1.
struct Collective {
  // All inputs are contiguous, in order, in memory from the communicator (a bucket of gradients).
  bool contiguous_inputs = false;
  bool contiguous_outputs = false;  // likewise for the outputs
};
inline bool is_collective(const Op& op) { return op.def->find_trait<Collective>() != nullptr; }
// The inputs or outputs that must be contiguous; null: none.
inline const std::vector<VarId>* contiguous_vars_of(const Op& op) {
  const Collective* trait = op.def->find_trait<Collective>();
  if (!trait) return nullptr;
  return trait->contiguous_inputs ? &op.inputs : trait->contiguous_outputs ? &op.outputs : nullptr;
}

// Makes `def` a collective. Adds the attributes
//   communicator    the GroupId of the participating ranks; each group has its own communicator
//   after_previous  starts after the preceding collective of the Program has ended, whatever its
//                   group and stream: all ranks then use communicators in one order
void define_collective(OpDef& def);
// Like the above, for any number of tensors of one type, in place: the outputs are the inputs. They
// are contiguous in the communicator's memory and sent as one message.
void define_bucket_collective(OpDef& def);

// Shape rule of define_bucket_collective().
void infer_in_place(ShapeContext& context);

// The group of an operation. kInternal if the Program has no such group.
const RankGroup& group_of(const Program& program, const Op& op);
// The number of ranks in the operation's group.
int group_size(const ShapeContext& context);
// kInternal unless this attribute names a rank of the group (not of the job).
void check_member(const ShapeContext& context, const std::string& attribute);
// kInternal unless attribute "op" is "sum", "min" or "max".
void check_reduction(const ShapeContext& context);

}  // namespace fleet
