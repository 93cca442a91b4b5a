// First half of building a Plan: chooses the kernel and the layouts of each operation and inserts
// reorders.
#pragma once

#include "exec/plan.h"

namespace fleet {

// Fills plan.ops and the layouts in plan.vars from plan.program (verified).
// PlanOptions::initial_layouts are kept.
void assign_layouts(Plan& plan, const PlanOptions& options);

}  // namespace fleet
