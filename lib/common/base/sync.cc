#include "base/sync.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/log.h"

namespace fleet {
namespace {

int without_interruption(int (*sync)(int), int file) {
  int result = 0;
  do {
    result = sync(file);
  } while (result != 0 && errno == EINTR);
  return result;
}

// Many file servers answer "no permission" to operations that they do not support.
bool says_nothing_about_names(int error) {
  return is_not_supported(error) || error == EACCES || error == EPERM || error == EBADF;
}

void warn_once(std::atomic<bool>* warned, const char* what, const std::string& path, int error) {
  if (warned->exchange(true)) return;
  spdlog::warn(
      "{}: this file system cannot flush {} to the disk ({}); a power failure may lose the newest",
      path, what, std::strerror(error));
}

}  // namespace

bool is_not_supported(int error) {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENOTSUP ||
         error == ENOTTY;
}

void sync_file(int file, const std::string& path, int (*sync)(int)) {
  if (without_interruption(sync, file) == 0) return;
  if (!is_not_supported(errno)) throw_errno("cannot sync the file", path);
  static std::atomic<bool> warned{false};
  warn_once(&warned, "files", path, errno);
}

void sync_folder(const std::string& path, int (*sync)(int)) {
  const UniqueFd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && without_interruption(sync, folder.get()) == 0) return;
  if (!says_nothing_about_names(errno)) throw_errno("cannot sync the folder", path);
  static std::atomic<bool> warned{false};
  warn_once(&warned, "folders", path, errno);
}

}  // namespace fleet
