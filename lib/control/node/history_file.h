// Files of JSON lines in the log folder, such as metrics.jsonl.
#pragma once

#include <string>

namespace fleet {

// Renames the file of an earlier job to PATH.1, .2 and so on. Does nothing without a file. kIo.
void set_history_aside(const std::string& path);
// Adds all of the lines or none. If the last line of the file was cut off, ends it first. kIo.
void append_history(const std::string& path, const std::string& lines);

}  // namespace fleet
