// Compares the ids of the data with the tables that a model looks them up in.
#pragma once

#include "graph/program.h"
#include "train/job.h"

namespace fleet {

// For data that say how many ids there are (data.ids). program: with lookups of the tables that
// parameter servers do not hold. kUsage naming data.ids if such a table has fewer rows.
void check_id_range(const Job& job, const Program& program);

}  // namespace fleet
