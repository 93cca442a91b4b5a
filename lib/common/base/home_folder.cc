#include "base/home_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <vector>

#include "base/env.h"
#include "base/error.h"

namespace fleet {

std::string home_folder() {
  if (const auto home = get_env("HOME")) return *home;
  passwd entry = {}, *found = nullptr;
  std::vector<char> texts(16 << 10);
  if (::getpwuid_r(::geteuid(), &entry, texts.data(), texts.size(), &found) != 0 || !found) {
    return {};
  }
  return found->pw_dir;
}

std::string expand_home(const std::string& path, const std::string& where) {
  if (!path.starts_with('~')) return path;
  const std::string& place = where.empty() ? path : where;
  const std::string name = path.substr(0, path.find('/'));
  if (name != "~") {
    throw Error(ErrorCode::kUsage, "'" + name + "' is not expanded, only '~/' is", place,
                "write the whole path, or ./" + name + " for a file of this name");
  }
  std::string home = home_folder();
  if (home.empty()) {
    throw Error(ErrorCode::kUsage, "'~' cannot be expanded: the home folder is unknown", place,
                "set HOME, or write the whole path");
  }
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  if (home == "/" && path.size() > 1) return path.substr(1);
  return home + path.substr(1);
}

std::optional<std::string> get_env_path(const std::string& name) {
  const auto value = get_env(name);
  if (!value) return std::nullopt;
  return expand_home(*value, "environment " + name);
}

}  // namespace fleet
