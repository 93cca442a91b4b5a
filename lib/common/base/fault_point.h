// Points at which tests end a process, as a crash at a bad moment would, or slow it down.
#pragma once

namespace fleet {

// Without the variable FLEET_FAULT, nothing. FLEET_FAULT="PLACE DETAIL N FILE" ends the process
// with SIGKILL when it comes to this point for the N-th time, if it can remove FILE: so only one
// process ends, and only once. FLEET_FAULT="PLACE DETAIL N FILE MILLISECONDS": instead that process
// sleeps so long each time from then on, and says so in its log. Any thread.
void fault_point(const char* place, int detail = 0);

}  // namespace fleet
