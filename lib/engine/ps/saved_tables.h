// Tables of a checkpoint, for predictions.
#pragma once

#include <memory>
#include <string>

#include "train/saved_rows.h"

namespace fleet::ps {

// Where a checkpoint has the snapshot of its tables.
std::string tables_of_checkpoint(const std::string& checkpoint);

// An OpenSavedRows. Errors of Snapshot and table_settings().
std::unique_ptr<SavedRows> open_saved_tables(const Job& job, const Program& program,
                                             const std::string& checkpoint);

}  // namespace fleet::ps
