#include "base/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace fleet {

std::string load_plugin(const std::string& name, const std::string& what) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> places = {folder, folder.parent_path() / "lib/fleetrun"};
  // A user's own program lies elsewhere: look next to the library that contains this function.
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&load_plugin), &info) != 0) {
    places.push_back(fs::path(info.dli_fname).parent_path() / "fleetrun");
  }
  for (const fs::path& place : places) {
    const fs::path plugin = place / ("lib" + name + ".so");
    if (!fs::exists(plugin, error)) continue;
    if (::dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL)) return "";
    return std::string("cannot load its plugin: ") + ::dlerror();
  }
  return "this build has no " + what;
}

}  // namespace fleet
