// Files with something that other users must not know or replace: secrets, private keys.
#pragma once

#include <string>

namespace fleet {

// The text of a file. Throws kUsage if other users may read or replace it, kNotFound if there is no
// such file, and kIo.
std::string read_private_file(const std::string& path);

// What can be read from `fd`, but not much more than 64 KiB. `path`: for errors. Throws kIo.
std::string read_small(int fd, const std::string& path);

}  // namespace fleet
