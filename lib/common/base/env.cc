#include "base/env.h"

#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/home_folder.h"
#include "base/text.h"
#include "base/text_file.h"

namespace fleet {

std::optional<std::string> get_env(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (!value || !*value) return std::nullopt;
  return std::string(value);
}

std::string env_or(const std::string& name, const std::string& otherwise) {
  return get_env(name).value_or(otherwise);
}

std::optional<std::string> get_env_or_file(const std::string& name) {
  if (auto value = get_env(name)) return value;
  const auto path = get_env_path(name + "_FILE");
  if (!path) return std::nullopt;
  return plain_text(read_file(*path), *path);
}

long long env_int_or(const std::string& name, long long otherwise) {
  const auto text = get_env(name);
  if (!text) return otherwise;
  long long value = 0;
  if (!parse_int(trim(*text), &value)) {
    throw Error(ErrorCode::kUsage, "'" + *text + "' is not an integer", "environment " + name);
  }
  return value;
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** entry = environ; entry && *entry; ++entry) all.emplace_back(*entry);
  return all;
}

}  // namespace fleet
