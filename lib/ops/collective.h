// What the collective operations share: the group they meet in, and their common attributes.
#pragma once

#include "graph/program.h"

namespace fleet {

// Makes `def` a collective. Adds the attributes
//   communicator    the GroupId of the ranks that meet; each group has a communicator of its own
//   after_previous  starts when the collective before it in the Program has ended, whatever the
//                   group and stream of that one: all ranks then use communicators in one order
void define_collective(OpDef& def);
// The same for any number of tensors of one type, in place: the outputs are the inputs. They lie
// side by side in the communicator's memory and travel as one message.
void define_bucket_collective(OpDef& def);

// Shape rule of define_bucket_collective().
void infer_in_place(ShapeContext& context);

// The group an operation meets in. kInternal where the Program has none of that number.
const RankGroup& group_of(const Program& program, const Op& op);
// Its ranks.
int group_size(const ShapeContext& context);
// kInternal unless this attribute names a rank of the group (not of the job).
void check_member(const ShapeContext& context, const std::string& attribute);
// kInternal unless attribute "op" is "sum", "min" or "max".
void check_reduction(const ShapeContext& context);

}  // namespace fleet
