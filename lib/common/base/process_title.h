// The name of this process for ps and pgrep -f.
#pragma once

#include <string>

namespace fleet {

// Shows `title` instead of the command line. A long one takes the room of the first environment
// variables, whose values it keeps elsewhere. Does nothing if /proc/self cannot be read. Call it
// in a process with a single thread.
void set_process_title(const std::string& title);

}  // namespace fleet
