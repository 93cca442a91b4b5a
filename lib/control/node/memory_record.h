// A copy of a job's record in the memory of its launcher: a logout removes the file
// (systemd-logind), and other processes of the user still find the job.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

// Keep it open, and close the previous one. Empty if no memory is left.
UniqueFd make_memory_record(const std::string& record);

// The copies of all launchers of this user that have the same FLEET_RUNTIME_DIR, or like this
// process none. Empty without a usable /proc.
std::vector<std::string> find_memory_records();

}  // namespace fleet
