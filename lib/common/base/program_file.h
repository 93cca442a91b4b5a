// Executable files of programs.
#pragma once

#include <string>

namespace fleet {

// Whether it is a regular file that this user may execute. Follows links.
bool is_executable(const std::string& path);

// The path of the program of this name in PATH, as a shell finds it: an empty folder in PATH is the
// current one. "" if none exists.
std::string find_on_path(const std::string& name);

}  // namespace fleet
