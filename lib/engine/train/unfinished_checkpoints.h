// The folders of interrupted saves (train/checkpoint.h).
#pragma once

#include <string>

namespace fleet {

// Removes the unfinished checkpoints below `root`. No save may be running.
void remove_unfinished_checkpoints(const std::string& root);

}  // namespace fleet
