// A lock on a folder that one program at a time writes into.
#pragma once

#include <string>

#include "base/file.h"

namespace fleet {

// Holds the lock until the descriptor is closed; the file is FOLDER/.lock. kUsage if another
// process has it: "another <program> writes into this folder". A file system without locks costs a
// line in the log, and nothing is locked.
UniqueFd lock_folder(const std::string& folder, const std::string& program);

}  // namespace fleet
