// Python's spellings in JSON: people paste from scripts.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// True and False become true and false, texts in single quotes get double ones (those that hold a
// double quote stay), and a comma before a closing bracket goes. Everything keeps its line and
// column. Texts in double quotes and comments stay as they are.
std::string json_from_python(std::string_view text);

}  // namespace fleet
