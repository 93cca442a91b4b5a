#include "launch/planning/secret_names.h"

#include <algorithm>
#include <cctype>

namespace fleet {

bool is_secret(const std::string& name) {
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (const char* word : {"TOKEN", "SECRET", "PASSWORD", "KEY"}) {
    if (upper.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string masked(const std::string& name, const std::string& value) {
  return is_secret(name) && !value.empty() ? "******" : value;
}

std::vector<std::string> masked(std::vector<std::string> entries) {
  for (std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = entry.substr(0, equals);
    entry = name + "=" + masked(name, entry.substr(equals + 1));
  }
  return entries;
}

}  // namespace fleet
