// Standard error, written without ever waiting for whoever reads it: a terminal that is stopped, or
// a pipe that nobody empties, must not keep a launcher from stopping its job.
#pragma once

#include <string_view>

namespace fleet {

// Writes whole lines, in order. What is not taken at once is kept (up to 1 MiB, then lines are
// dropped) and written by a thread as soon as it can be. Thread safe.
void write_standard_error(std::string_view lines);
// Before the process ends: waits for what is kept, as long as some of it is taken every 2 s.
void flush_standard_error();

}  // namespace fleet
