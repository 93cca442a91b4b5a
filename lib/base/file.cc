#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace fleet {

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

void throw_errno(const std::string& what, const std::string& where) {
  throw Error(ErrorCode::kIo, what + ": " + std::strerror(errno), where);
}

std::string read_file(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    throw Error(code, std::string("cannot open the file: ") + std::strerror(errno), path);
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
  const std::string aside = path + ".part." + std::to_string(::getpid());
  UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) throw_errno("cannot create the file", aside);
  const auto fail = [&](const char* what) {
    const int error = errno;
    ::unlink(aside.c_str());
    errno = error;
    throw_errno(what, aside);
  };
  for (size_t done = 0; done < content.size();) {
    const ssize_t n = ::write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot write the file");
    done += static_cast<size_t>(n);
  }
  if (::fsync(fd.get()) != 0) fail("cannot sync the file");
  if (::rename(aside.c_str(), path.c_str()) != 0) fail("cannot rename the file into place");
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw Error(ErrorCode::kIo, "cannot create the folder: " + error.message(), path);
}

}  // namespace fleet
