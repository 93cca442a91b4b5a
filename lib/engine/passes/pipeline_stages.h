// Stages of a pipeline: consecutive parts of the model, each on another rank.
#pragma once

#include <map>
#include <vector>

#include "graph/program.h"

namespace fleet {

// An annotation of operations (Program::make_op()): the stage. The backward pass gives an operation
// the stage of the forward operation that it differentiates, and copies keep it.
inline constexpr char kStageAnnotation[] = "@stage";

// Copies the stage of one operation, if it has any, to another.
void copy_stage(const Op& from, Op& to);

// Marks the operations of the forward section: stage i ends with the operation that writes ends[i],
// the last stage with the last operation. False if some stage would be empty, because the ends are
// not in the order of the operations.
bool mark_stages(Program& program, SectionId forward, const std::vector<VarId>& ends);

// Ends that divide the time of the forward section evenly, estimated from multiplications and from
// bytes read and written; the bytes that the stages exchange count too. Fewer than stages - 1 if
// the model has too few operations.
std::vector<VarId> balanced_ends(const Program& program, SectionId forward, int stages);

struct StageMap {
  std::vector<int> of_op;       // by operation; -1: in no stage, since it is not about samples
  std::map<VarId, int> of_var;  // parameters and states of the model, and copies of parameters
};
// The stages of all operations, after mark_stages() and the backward pass. Operations without a
// mark have the stage of what they read. kUsage naming a parameter that two stages use.
StageMap find_stages(const Program& program, SectionId backward, int stages);

}  // namespace fleet
