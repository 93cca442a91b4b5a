#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/owned_file.h"

namespace fleet {

SystemError::SystemError(ErrorCode code, const std::string& what, int error,
                         const std::string& where, Wanted wanted)
    : Error(code, what + ": " + std::strerror(error), where, limit_behind(error, wanted)),
      error_(error) {}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void UniqueFd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void throw_errno(const std::string& what, const std::string& where, Wanted wanted) {
  throw SystemError(ErrorCode::kIo, what, errno, where, wanted);
}

size_t read_at(const UniqueFd& file, void* to, size_t bytes, uint64_t offset,
               const std::string& path) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file.get(), static_cast<char*>(to) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read the file", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    throw SystemError(code, "cannot open the file", errno, path);
  }
  std::string content;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n == 0) return content;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno("cannot read the file", path);
    content.append(buffer, static_cast<size_t>(n));
  }
}

void write_file_atomically(const std::string& path, std::string_view content) {
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const UniqueFd folder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) throw_errno("cannot create the file", path);
  replace_file(folder.get(), path, content, {});
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ErrorCode::kIo, "cannot create the folder: " + error.message(), path);
}

}  // namespace fleet
