// Writes to standard error without ever waiting for its reader: a stopped terminal, or a pipe that
// no one empties, must not keep a launcher from stopping its job.
#pragma once

#include <string_view>

namespace fleet {

// Writes whole lines, in order. Lines that cannot be written at once are kept (up to 1 MiB, then
// lines are dropped), and a thread writes them as soon as possible. Thread-safe.
void write_standard_error(std::string_view lines);
// Call before the process ends: waits for the kept lines as long as some are written every 2 s.
void flush_standard_error();

}  // namespace fleet
