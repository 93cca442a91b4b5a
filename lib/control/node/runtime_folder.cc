#include "node/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/home_folder.h"
#include "base/log.h"
#include "base/owned_file.h"

namespace fleet {
namespace {

constexpr char kNext[] = "remove it, or name another folder with FLEET_RUNTIME_DIR";

// The session's folder; "" if this user may use none.
std::string session_folder() {
  const auto session = get_env("XDG_RUNTIME_DIR");
  struct stat found = {};
  if (!session || ::stat(session->c_str(), &found) != 0) return {};
  if (found.st_uid == ::geteuid()) {
    return ::access(session->c_str(), W_OK | X_OK) == 0 ? *session : std::string();
  }
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    spdlog::warn("XDG_RUNTIME_DIR {}: it belongs to {} and is ignored; unset it", *session,
                 name_of_user(found.st_uid));
  }
  return {};
}

}  // namespace

std::string runtime_folder() {
  if (const auto own = get_env_path("FLEET_RUNTIME_DIR")) return *own;
  if (const std::string session = session_folder(); !session.empty()) return session + "/fleetrun";
  return "/tmp/fleetrun-" + std::to_string(::geteuid());
}

std::vector<std::string> runtime_folders() {
  std::vector<std::string> all = {runtime_folder()};
  if (get_env_path("FLEET_RUNTIME_DIR")) return all;
  const std::string user = std::to_string(::geteuid());
  for (const std::string& other : {"/run/user/" + user + "/fleetrun", "/tmp/fleetrun-" + user}) {
    if (other != all.front()) all.push_back(other);
  }
  return all;
}

std::vector<std::string> usable_runtime_folders() {
  std::vector<std::string> usable;
  const std::string own = runtime_folder();
  for (const std::string& folder : runtime_folders()) {
    try {
      check_runtime_folder(folder);
      usable.push_back(folder);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound && folder == own) throw;
    }
  }
  return usable;
}

void check_runtime_folder(const std::string& folder) {
  struct stat found = {};
  if (::lstat(folder.c_str(), &found) != 0) {
    throw Error(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                std::string("cannot open the folder: ") + std::strerror(errno), folder);
  }
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, "cannot keep records of jobs there: " + what, folder, kNext);
  };
  if (S_ISLNK(found.st_mode)) refuse("it is a symbolic link");
  if (!S_ISDIR(found.st_mode)) refuse("it is not a folder");
  if (found.st_uid != ::geteuid()) refuse("it belongs to " + name_of_user(found.st_uid));
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) refuse("other users may write to it");
  open_owned_folder(folder);  // checks the path to it
}

std::vector<std::string> files_in_runtime_folders(const std::string& ending) {
  std::vector<std::string> paths;
  for (const std::string& folder : usable_runtime_folders()) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string path = entry.path().string();
      if (path.ends_with(ending)) paths.push_back(path);
    }
  }
  return paths;
}

std::string make_runtime_folder() {
  const std::string folder = runtime_folder();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno("cannot create the folder", folder);
  }
  check_runtime_folder(folder);
  return folder;
}

}  // namespace fleet
