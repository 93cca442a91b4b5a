// The tables of a job.
#pragma once

#include <vector>

#include "graph/program.h"
#include "ps/tables/table_settings.h"
#include "train/job.h"

namespace fleet::ps {

// The settings of the tables that this Program of the job has on servers (served_tables()), in the
// same order. Errors of table_settings().
std::vector<TableSettings> tables_of(const Job& job, const Program& program);

}  // namespace fleet::ps
