#include "base/file_status.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace fleet {

static bool get_status(const std::string& path, struct stat* status) {
  if (::stat(path.c_str(), status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw_errno("cannot be examined", path);
}

bool path_exists(const std::string& path) {
  struct stat status;
  return get_status(path, &status);
}

bool is_folder(const std::string& path) {
  struct stat status;
  return get_status(path, &status) && S_ISDIR(status.st_mode);
}

const char* kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

}  // namespace fleet
