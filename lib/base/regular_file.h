// Files that must be just that: no pipe, device or folder that a name happens to stand for.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"

namespace fleet {

struct RegularFile {
  UniqueFd fd;  // for reading
  int64_t size = 0;
};

// Never waits for a writer, as opening a pipe does. Links are followed. kUsage saying what it is
// where it is no regular file, kNotFound or kIo where it cannot be opened.
RegularFile open_regular_file(const std::string& path);

// The whole content. As above, and kUsage where it has more than `most` bytes, of which no more are
// read.
std::string read_regular_file(const std::string& path, int64_t most);

// The same of a pipe too, as `<(...)` of a shell is one, and of a device: waits for who writes it.
std::string read_small_file(const std::string& path, int64_t most);

// Before something is written beside `path` and renamed to it: kUsage saying what it is where the
// name stands for something that is no regular file, which would be lost. A name that nothing has
// passes. Links are followed.
void check_replaceable(const std::string& path);

}  // namespace fleet
