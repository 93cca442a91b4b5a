// Accepts Python spellings in JSON, because people paste from scripts.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// True and False become true and false, strings in single quotes get double quotes (unless they
// contain a double quote), and a comma before a closing bracket is removed. Line and column numbers
// do not change. Strings in double quotes and comments stay as they are.
std::string json_from_python(std::string_view text);

}  // namespace fleet
