// Environment variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace fleet {

// The variable's value, or nothing where it is not set. An empty value counts as not set.
std::optional<std::string> get_env(const std::string& name);
std::string env_or(const std::string& name, const std::string& otherwise);
// What NAME has, or where that is not set the file that NAME_FILE names: values that are too long
// for an environment are handed over so. kIo or kNotFound where that cannot be read.
std::optional<std::string> get_env_or_file(const std::string& name);
// kUsage, naming the variable, where it is set to something that is not an integer.
long long env_int_or(const std::string& name, long long otherwise);
// All of it, "NAME=value" each.
std::vector<std::string> whole_environment();

}  // namespace fleet
