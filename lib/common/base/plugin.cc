#include "base/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace fleet {

namespace fs = std::filesystem;

// The plugin's file; empty if this build has none.
static fs::path plugin_file(const std::string& name) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<fs::path> places = {folder, folder.parent_path() / "lib/fleetrun"};
  // A user's own program lies elsewhere: look next to the library that contains this function.
  Dl_info info;
  if (::dladdr(reinterpret_cast<void*>(&load_plugin), &info) != 0) {
    places.push_back(fs::path(info.dli_fname).parent_path() / "fleetrun");
  }
  for (const fs::path& place : places) {
    fs::path plugin = place / ("lib" + name + ".so");
    if (fs::exists(plugin, error)) return plugin;
  }
  return {};
}

std::string load_plugin(const std::string& name, const std::string& what) {
  const fs::path plugin = plugin_file(name);
  if (plugin.empty()) return "this build has no " + what;
  if (::dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL)) return "";
  return std::string("cannot load its plugin: ") + ::dlerror();
}

bool plugin_exists(const std::string& name) { return !plugin_file(name).empty(); }

}  // namespace fleet
