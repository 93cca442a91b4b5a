// For each operation of a Plan, the operations that must end first because of shared variables.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

struct Predecessor {
  int op = 0;        // index in Plan::ops
  double bytes = 0;  // that it wrote and the later operation reads
};

// By operation: earlier operations that wrote what it reads or is held back by (Op::after), or that
// read or wrote what it writes. Sections are taken to run all. Those that follow from others by way
// of a third may be missing.
std::vector<std::vector<Predecessor>> find_predecessors(const Plan& plan);

}  // namespace fleet
