// The descriptors 0 to 2.
#pragma once

namespace fleet {

// Opens /dev/null for those of 0 to 2 that the parent process has closed; otherwise the next file
// that this process opens would get the number, and log lines would be written into it. Reading
// from a reserved standard input ends at once; writing to a reserved standard output or error still
// fails (EBADF), so that a lost result remains an error. Call it first in main(), before anything
// is opened; descriptors that are open stay as they are. Throws nothing.
void reserve_standard_streams();

// Writes what stdio holds of standard output. Returns false if output of this process is lost, for
// example on a full disk. A reader that has left, such as `head`, wants no more.
bool flush_standard_output();
// The line for such a loss.
inline constexpr char kOutputLost[] =
    "standard output: cannot be written; free space, or write elsewhere";
// Whether the parent process closed standard output, because it needs none of it. Call it after
// reserve_standard_streams().
bool standard_output_is_closed();

}  // namespace fleet
