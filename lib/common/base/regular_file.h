// Opens files that must be regular: a name may also stand for a pipe, device or folder.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"

namespace fleet {

struct RegularFile {
  UniqueFd fd;  // for reading
  int64_t size = 0;
};

// Never waits for a writer, as opening a pipe would. Follows links. kUsage naming the kind of file
// if it is not a regular one, kNotFound or kIo if it cannot be opened.
RegularFile open_regular_file(const std::string& path);

// The whole content. Errors as above, and kUsage if it has more than `most` bytes; then it is not
// read further.
std::string read_regular_file(const std::string& path, int64_t most);

// The same, also for a pipe (such as `<(...)` of a shell) or a device: waits for its writer.
std::string read_small_file(const std::string& path, int64_t most);

// Check to make before writing a file next to `path` and renaming it: kUsage naming the kind of
// file if `path` exists and is not a regular file, because the rename would destroy it. A name that
// does not exist passes. Follows links.
void check_replaceable(const std::string& path);

}  // namespace fleet
