// Which operations of a Plan have certainly ended when another one starts, streams and sections
// considered.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "exec/plan.h"

namespace fleet {

// Two operations of one stream run in the order of the Plan. Two of different streams are in order
// where one writes what the other reads or writes: the later one waits (Plan::schedule()). Orders
// chain, a before b before c, only where b runs in every run that has both a and c: a section that
// does not run waits for nothing. Each operation has a vector clock: for every stream, the last
// operation that has certainly ended.
//
// A step's streams begin when the step before has ended on all of them, so this is about one run.
class StreamOrder {
 public:
  // Refers to the Plan's sections and operations; its operations must stay.
  explicit StreamOrder(const Plan& plan);

  // Whether a has ended when b starts, in every run that has both; also where no run has both.
  // a and b are places in Plan::ops.
  bool before(int a, int b);

 private:
  using Clocks = std::vector<int>;  // of operation i and stream s at i * streams + s; -1: none
  const Clocks& clocks(SectionId a, SectionId b);
  Clocks count(const std::vector<bool>& active) const;

  const Program& program_;
  const std::vector<PlannedOp>& ops_;
  int streams_ = 1;
  std::vector<bool> excluded_;  // pairs of sections that never run together
  std::map<std::pair<SectionId, SectionId>, Clocks> clocks_;
};

}  // namespace fleet
