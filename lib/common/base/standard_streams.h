// The descriptors 0 to 2.
#pragma once

namespace fleet {

// Opens /dev/null for those of 0 to 2 that the parent process has closed; otherwise the next file
// that this process opens would get the number, and log lines would be written into it. Reading
// from a reserved standard input ends at once; writing to a reserved standard output or error still
// fails (EBADF), so that a lost result remains an error. Call it first in main(), before anything
// is opened; descriptors that are open stay as they are. Throws nothing.
void reserve_standard_streams();

}  // namespace fleet
