// Variables whose values must not be printed.
#pragma once

#include <string>
#include <vector>

namespace fleet {

std::string upper_case(std::string text);

// Whether a variable's name suggests a secret: it contains TOKEN, SECRET, PASSWORD or KEY, ignoring
// case.
bool is_secret(const std::string& name);

// The value as shown to people and logs.
std::string masked(const std::string& name, const std::string& value);
// Masks the values of "NAME=value" entries; other entries stay unchanged.
std::vector<std::string> masked(std::vector<std::string> entries);

}  // namespace fleet
