#include "launch/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"

namespace fleet {
namespace {

bool is_file(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool is_executable(const std::string& path) {
  return is_file(path) && ::access(path.c_str(), X_OK) == 0;
}

void refuse_folder(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  throw Error(ErrorCode::kUsage, "this is a folder", path, "name a job file, a .py or a program");
}

void need_file(const std::string& path, const std::string& what) {
  refuse_folder(path);
  if (is_file(path) && ::access(path.c_str(), R_OK) == 0) return;
  throw Error(ErrorCode::kUsage, "cannot read the " + what, path,
              "give its path, and options of fleetrun before it");
}

// "" where PATH has none.
std::string in_path(const std::string& name) {
  for (const std::string& folder : split(env_or("PATH", "/usr/local/bin:/usr/bin:/bin"), ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(path)) return path;
  }
  return {};
}

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable(name)) return name;
    refuse_folder(name);
    if (!is_file(name)) {
      throw Error(ErrorCode::kUsage, "there is no such program", name, "give its path");
    }
    throw Error(ErrorCode::kUsage, "this file may not be executed", name,
                "chmod +x it, or name its interpreter before it");
  }
  if (const std::string path = in_path(name); !path.empty()) return path;
  throw Error(ErrorCode::kUsage, "there is no program of this name in PATH", name,
              is_file(name) ? "for the file in this folder write ./" + name
                            : "name a job file, a .py or a program");
}

}  // namespace

bool is_program(const std::string& name) { return is_file(name) || !in_path(name).empty(); }

bool is_job_file(const std::string& program) { return program.ends_with(".json"); }

std::vector<std::string> rank_command(const std::vector<std::string>& program,
                                      const std::string& worker) {
  const std::string& first = program.front();
  std::vector<std::string> command;
  if (is_job_file(first)) {
    need_file(first, "job file");
    if (!is_executable(worker)) {
      throw Error(ErrorCode::kNotFound, "fleet-worker, which runs job files, is not there", worker,
                  "install it beside fleetrun, or build it: cmake --build --target fleet-worker");
    }
    command = {worker};
  } else if (first.ends_with(".py")) {
    need_file(first, "script");
    command = {find_in_path("python3"), "-u"};
  } else {
    command = {find_in_path(first)};
    command.insert(command.end(), program.begin() + 1, program.end());
    return command;
  }
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::string worker_beside_launcher() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path() / "fleet-worker").string();
}

}  // namespace fleet
