#include "launch/planning/mpi_library.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/error.h"
#include "base/program_file.h"
#include "base/regular_file.h"
#include "launch/planning/elf_file.h"
#include "launch/planning/fingerprint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLibraries = 1000;

// The first line of a script without "#!"; "" for another file.
std::string interpreter_line(const std::string& path) {
  constexpr size_t kLongest = 256;  // as the kernel reads
  try {
    const RegularFile file = open_regular_file(path);
    std::string start(kLongest, '\0');
    start.resize(read_at(file.fd, start.data(), start.size(), 0, path));
    if (!start.starts_with("#!")) return {};
    return start.substr(2, start.find('\n') - 2);
  } catch (const Error&) {
    return {};
  }
}

// The file that runs: the program, or the interpreter of a script, or of that one. "" if it is not
// here.
std::string running_file(std::string program) {
  constexpr int kDeepest = 4;  // as the kernel follows
  for (int depth = 0; depth <= kDeepest; ++depth) {
    const std::string path =
        program.find('/') == std::string::npos ? find_on_path(program) : program;
    std::istringstream words(interpreter_line(path));
    std::string interpreter, argument;
    words >> interpreter >> argument;
    if (interpreter.empty()) return path;
    if (argument == "-S") words >> argument;
    program = interpreter.ends_with("/env") ? argument : interpreter;
  }
  return {};
}

std::string with_origin(std::string folder, const std::string& file) {
  for (const std::string_view name : {"$ORIGIN", "${ORIGIN}"}) {
    const size_t at = folder.find(name);
    if (at != std::string::npos) {
      folder.replace(at, name.size(), fs::path(file).parent_path().string());
    }
  }
  return folder;
}

}  // namespace

// MPICH and those that are compatible with it (Intel MPI, MVAPICH, Cray MPICH) agreed on
// libmpi.so.12; libmpi.so.4 is an older Intel MPI. Open MPI's have other numbers.
std::optional<MpiLibrary> mpi_library_named(const std::string& name) {
  const size_t suffix = name.find(".so.");
  if (suffix == std::string::npos) return std::nullopt;
  for (const char* mpich : {"libmpich", "libmpifort.", "libmpicxx."}) {
    if (name.starts_with(mpich)) return MpiLibrary{"mpich", name};
  }
  if (!name.starts_with("libmpi.") && !name.starts_with("libmpi_")) return std::nullopt;
  const std::string version = name.substr(suffix + 4, name.find('.', suffix + 4) - suffix - 4);
  return MpiLibrary{version == "12" || version == "4" ? "mpich" : "openmpi", name};
}

std::optional<MpiLibrary> mpi_library_of(const std::string& program) {
  std::vector<std::string> files = {running_file(program)};
  const std::vector<std::string> usual = library_folders(env_or("LD_LIBRARY_PATH", ""));
  std::set<std::string> seen;
  for (size_t next = 0; next < files.size() && next < kMaxLibraries; ++next) {  // nearest first
    const std::string file = files[next];
    const auto elf = ElfFile::open(file);
    if (!elf) continue;
    const ElfFile::Links links = elf->links();
    for (const std::string& name : links.libraries) {
      if (auto found = mpi_library_named(name.substr(name.rfind('/') + 1))) return found;
    }
    std::vector<std::string> folders;
    for (const std::string& folder : links.folders) folders.push_back(with_origin(folder, file));
    folders.insert(folders.end(), usual.begin(), usual.end());
    for (const std::string& name : links.libraries) {
      if (!seen.insert(name).second) continue;
      const bool is_path = name.find('/') != std::string::npos;
      const std::string path = is_path ? name : find_library(name, folders);
      if (!path.empty()) files.push_back(path);
    }
  }
  return std::nullopt;
}

}  // namespace fleet
