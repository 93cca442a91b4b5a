#include "base/cache_file.h"

#include <cctype>

#include "base/env.h"
#include "base/home_folder.h"

namespace fleet {

std::string cache_file(std::string name) {
  std::string folder;
  if (const auto cache = get_env_path("XDG_CACHE_HOME")) {
    folder = *cache;
  } else if (const auto home = get_env("HOME")) {
    folder = *home + "/.cache";
  } else {
    return {};
  }
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  return folder + "/fleetrun/" + name;
}

}  // namespace fleet
