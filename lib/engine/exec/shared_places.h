// Several Plans of one net, for batches of several shapes, that share the memory of an Executor:
// its parameters and states, and memory for everything else, because one of them runs at a time.
#pragma once

#include <map>
#include <vector>

#include "exec/plan.h"

namespace fleet {

// The layouts of the first Plan's parameters and states, by the variables of `program`, for the
// other Plans' PlanOptions::initial_layouts.
std::map<VarId, Layout> lasting_layouts(const Plan& first, const Program& program);

// Gives each Plan's parameters, states, feeds and fetched variables the places of the first Plan's
// variables of the same names. Variables are known by their names; feeds and fetched variables may
// differ in shape. kUnsupported, naming the first difference, if the Plans differ in parameters,
// states, sections, flags, groups, or in the order of variables that are adjacent in memory.
void share_places(std::vector<Plan>& plans);

// The ends of the places given so far, in bytes.
struct SharedEnds {
  size_t persistent = 0;
  std::vector<size_t> buckets = {};  // by group
};

// Gives a Plan of the same shapes, whose states are some of the first Plan's, the places of these.
// States that are near others in one of the Plans only, because ranks exchange them together, get
// places of their own, behind `ends`; Executor::select() moves their values. kUnsupported as above.
void share_some_places(const Plan& first, Plan* other, SharedEnds* ends);

// By VarId of the first Plan: the other Plan's variable of the same name; kNoVar: it has none.
std::vector<VarId> same_vars(const Program& first, const Program& other);

}  // namespace fleet
