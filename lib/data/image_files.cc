#include "data/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"

namespace fleet::data {

Sample ImageFiles::read(int64_t index, std::vector<uint8_t>& scratch) const {
  const std::string& path = files_[index].path;
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) throw_errno("cannot read the image", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (scratch.size() < size) scratch.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), scratch.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("cannot read the image", path);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return {.bytes = {scratch.data(), done}};
}

}  // namespace fleet::data
