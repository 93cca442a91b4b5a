// SIGXFSZ: the kernel sends it to a process that makes a file larger than its limit (ulimit -f).
#pragma once

namespace fleet {

// The write fails with EFBIG instead of ending the process: the caller reports the file. Call it
// first in main(). Programs that this one starts must get the signal's action back (below).
void ignore_file_size_signal();
// Whether ignore_file_size_signal() has replaced the default action.
bool file_size_signal_is_replaced();
// In a forked child, or before this process executes another program. Async-signal-safe.
void restore_file_size_signal();

}  // namespace fleet
