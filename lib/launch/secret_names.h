// What must not be printed.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Whether a variable's name says that its value is a secret: TOKEN, SECRET, PASSWORD or KEY in it,
// in letters of any size.
bool is_secret(const std::string& name);

// The value as people and logs may see it.
std::string masked(const std::string& name, const std::string& value);
// The same of "NAME=value" entries; others stay as they are.
std::vector<std::string> masked(std::vector<std::string> entries);

}  // namespace fleet
