// Paths of the files that a test needs, in a build tree and in the portable tarball
// alike: nothing of it is a path of the machine that built it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace fleet {

// The folder of the running program: fleetrun, fleet-worker and the tests' helpers lie in it.
inline std::string program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

// The repository, or the top of an unpacked tarball: tests/golden lies below it. The nearest folder
// above the program that has it; for a build folder elsewhere, the file that CMake wrote next to
// the program. (As a definition for the compiler, the path would keep checkouts from sharing
// compiled files.)
inline std::string source_folder() {
  namespace fs = std::filesystem;
  for (fs::path at = program_folder(); at != at.root_path(); at = at.parent_path()) {
    if (fs::exists(at / "tests/golden/lenet.json")) return at.string();
  }
  std::string folder;
  std::getline(std::ifstream(program_folder() + "/source_folder"), folder);
  return folder;
}

// Whether libfleet_<name>.so is where the program looks for it (exec/backend.h).
inline bool has_plugin(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path folder = program_folder(), file = "libfleet_" + name + ".so";
  return fs::exists(folder / file) || fs::exists(folder.parent_path() / "lib/fleetrun" / file);
}

}  // namespace fleet
