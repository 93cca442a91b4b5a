// The operations of a Plan that have certainly ended when another one starts, given streams and
// sections.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "exec/plan.h"

namespace fleet {

// Two operations of one stream run in the order of the Plan. Two operations of different streams
// are ordered if one writes variables that the other reads or writes, or starts after (Op::after):
// the later one waits (Plan::schedule()).
// Orders are transitive (a before b before c) only if b runs in every run that has both a and c: a
// section that does not run waits for nothing. Each operation has a vector clock: for every stream,
// the last operation that has certainly ended.
//
// All streams of a step start after the previous step has ended on all of them, so this concerns
// one run.
class StreamOrder {
 public:
  // Keeps a reference to the Plan, whose sections and operations must not change.
  explicit StreamOrder(const Plan& plan);

  // Whether a has ended when b starts, in every run that has both. Also true if no run has both. a
  // and b are indices in Plan::ops.
  bool before(int a, int b);

 private:
  using Clocks = std::vector<int>;  // operation i and stream s at i * streams + s; -1: none
  const Clocks& clocks(SectionId a, SectionId b);
  Clocks count(const std::vector<bool>& active) const;

  const Program& program_;
  const std::vector<PlannedOp>& ops_;
  int streams_ = 1;
  std::vector<bool> excluded_;  // pairs of sections that never run together
  std::map<std::pair<SectionId, SectionId>, Clocks> clocks_;
};

}  // namespace fleet
