// Environment variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleet {

// The variable's value, or nullopt if it is not set. An empty value counts as not set.
std::optional<std::string> get_env(const std::string& name);
std::string env_or(const std::string& name, const std::string& otherwise);
// The value of NAME or, if that is not set, the content of the file that NAME_FILE names: values
// that are too long for an environment are passed this way. kIo or kNotFound if the file cannot be
// read.
std::optional<std::string> get_env_or_file(const std::string& name);
// Throws kUsage, naming the variable, if its value is not an integer.
long long env_int_or(const std::string& name, long long otherwise);
// All variables, as "NAME=value".
std::vector<std::string> whole_environment();

}  // namespace fleet
