// First half of making a Plan: which kernel runs each operation, in which layouts, with which
// reorders between.
#pragma once

#include "exec/plan.h"

namespace fleet {

// Fills plan.ops and the layouts of plan.vars from plan.program (verified). initial: layouts fixed
// beforehand.
void assign_layouts(Plan& plan, const PlanOptions& options);

}  // namespace fleet
