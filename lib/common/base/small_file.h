// Kernel files, and other files of a few lines.
#pragma once

#include <string>

namespace fleet {

// The content without surrounding blanks; "" if the file cannot be read or does not exist. Throws
// nothing: a start looks for many files that most machines lack.
std::string small_file(const std::string& path);

}  // namespace fleet
