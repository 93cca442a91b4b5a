#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "transport/security.h"

namespace fleet {
namespace {

// Anyone who can read or replace the secret could start processes in our name. A file that root
// shares with our group is fine: Kubernetes mounts a Secret so in a pod with an fsGroup.
void refuse_shared(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) throw_errno("cannot be examined", path);
  if (!S_ISREG(status.st_mode)) return;
  const bool from_root = status.st_uid == 0 && ::geteuid() != 0;
  const mode_t others = status.st_mode & (from_root ? 037 : 077);
  if (others != 0) {
    throw Error(ErrorCode::kUsage, "other users may read or change this secret", path,
                "chmod 600 " + path + "; defaultMode: 0400 for a Secret of Kubernetes");
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw Error(ErrorCode::kUsage, "this secret belongs to another user", path);
  }
}

}  // namespace

std::string read_small(int fd, const std::string& path) {
  std::string text;
  char block[4096];
  ssize_t count = 0;
  while (text.size() < (1 << 16) && (count = ::read(fd, block, sizeof block)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno("cannot be read", path);
    text.append(block, static_cast<size_t>(count));
  }
  return text;
}

std::string read_private_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) throw Error(ErrorCode::kNotFound, "there is no such file", path);
  if (!file) throw_errno("cannot be opened", path);
  refuse_shared(file.get(), path);
  return read_small(file.get(), path);
}

}  // namespace fleet
