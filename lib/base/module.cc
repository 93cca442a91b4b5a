#include "base/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace fleet {

std::string load_module(const std::string& name, const std::string& what) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& place : {folder, folder.parent_path() / "lib/fleetrun"}) {
    const fs::path module = place / ("lib" + name + ".so");
    if (!fs::exists(module, error)) continue;
    if (::dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL)) return "";
    return std::string("its module cannot be loaded: ") + ::dlerror();
  }
  return "this build has no " + what;
}

}  // namespace fleet
