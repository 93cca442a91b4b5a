#include <map>

#include "exec/assignment.h"
#include "ops/collective.h"

namespace fleet {
namespace {

// Records `neighbour` as the variable next to `var` on one side.
void link(std::map<VarId, VarId>& side, VarId var, VarId neighbour, const Program& program) {
  const auto [found, fresh] = side.try_emplace(var, neighbour);
  FLEET_CHECK(fresh || found->second == neighbour,
              "'" + program.var(var).name + "' is in two buckets, next to '" +
                  program.var(found->second).name + "' and '" + program.var(neighbour).name + "'");
}

}  // namespace

std::vector<ContiguousVars> find_contiguous_vars(const Plan& plan) {
  std::map<VarId, VarId> next, previous;
  std::vector<ContiguousVars> seen;  // each variable alone, in order of first use
  std::map<VarId, bool> placed;
  for (const PlannedOp& planned : plan.ops) {
    const Op& op = planned.op;
    const std::vector<VarId>* vars = contiguous_vars_of(op);
    if (!vars) continue;
    const auto group = static_cast<GroupId>(op.attributes.integer("communicator"));
    for (size_t i = 0; i < vars->size(); ++i) {
      const VarId id = (*vars)[i];
      if (placed.try_emplace(id, false).second) seen.push_back({{id}, group});
      if (i == 0) continue;
      link(next, (*vars)[i - 1], id, plan.program);
      link(previous, id, (*vars)[i - 1], plan.program);
    }
  }
  std::vector<ContiguousVars> chains;
  for (const ContiguousVars& chain : seen) {
    VarId first = chain.vars[0];
    if (placed[first]) continue;
    while (previous.contains(first)) {
      first = previous[first];
      FLEET_CHECK(first != chain.vars[0],
                  "'" + plan.program.var(first).name + "' is twice in a bucket");
    }
    chains.push_back({.vars = {}, .group = chain.group});
    for (VarId id = first;; id = next[id]) {
      placed[id] = true;
      chains.back().vars.push_back(id);
      if (!next.contains(id)) break;
    }
  }
  return chains;
}

}  // namespace fleet
