// Bytes as a file, for parsers that take a path. It lies in memory: a target leaves nothing behind.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "base/file.h"

namespace fleet::fuzz {

class MemoryFile {
 public:
  // kIo
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (!file_) throw_errno("cannot make a file in memory");
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written <= 0) throw_errno("cannot write a file in memory");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  // Valid as long as this object. Each open() of it begins at the first byte.
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  UniqueFd file_;
};

}  // namespace fleet::fuzz
