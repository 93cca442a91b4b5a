#include "launch/planning/secret_names.h"

#include <algorithm>
#include <cctype>

namespace fleet {

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

bool is_secret(const std::string& name) {
  const std::string upper = upper_case(name);
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
