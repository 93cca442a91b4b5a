#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file_status.h"
#include "base/text.h"

namespace fleet {
namespace {

[[noreturn]] void throw_kind(mode_t mode, const std::string& path) {
  throw Error(ErrorCode::kUsage, std::string("it is ") + kind_of_file(mode) + ", not a file", path,
              "give a regular file");
}

[[noreturn]] void throw_not_opened(int why, const std::string& path) {
  throw SystemError(why == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open the file",
                    why, path);
}

std::string read_whole(const RegularFile& file, const std::string& path, int64_t most) {
  const auto too_large = [&] {
    return Error(ErrorCode::kUsage,
                 "the file is larger than " + mebibytes(static_cast<size_t>(most)), path,
                 "name another file");
  };
  if (file.size > most) throw too_large();
  // Files of /proc report no size, and others may grow. One extra byte detects the end with one
  // read.
  std::string content(static_cast<size_t>(file.size) + 1, '\0');
  size_t done = 0;
  for (;;) {
    const ssize_t got = ::read(file.fd.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read the file", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
    if (done > static_cast<size_t>(most)) throw too_large();
    if (done == content.size()) content.resize(2 * content.size());
  }
  content.resize(done);
  return content;
}

}  // namespace

RegularFile open_regular_file(const std::string& path) {
  struct stat status {};
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) {
    const int why = errno;  // a socket cannot be opened
    if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && why == ENXIO) {
      throw_kind(status.st_mode, path);
    }
    throw_not_opened(why, path);
  }
  if (::fstat(fd.get(), &status) != 0) throw_errno("cannot inspect the file", path);
  if (!S_ISREG(status.st_mode)) throw_kind(status.st_mode, path);
  return {std::move(fd), static_cast<int64_t>(status.st_size)};
}

void check_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw_kind(status.st_mode, path);
  }
}

std::string read_regular_file(const std::string& path, int64_t most) {
  return read_whole(open_regular_file(path), path, most);
}

std::string read_small_file(const std::string& path, int64_t most) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) throw_not_opened(errno, path);
  return read_whole({std::move(fd), 0}, path, most);
}

}  // namespace fleet
