// Flushing files and folders to the disk.
#pragma once

#include <unistd.h>

#include <string>

namespace fleet {

// True if this errno of a file system says that it does not have the call, and nothing about data:
// EINVAL, ENOSYS, EOPNOTSUPP, ENOTTY.
bool is_not_supported(int error);

// Flushes the content of an open file. kIo naming `path`: the content may be lost (EIO, ENOSPC,
// EDQUOT and others). A file system without fsync(2) causes one warning per process.
// `sync`: fsync(2); tests replace it.
void sync_file(int file, const std::string& path, int (*sync)(int) = ::fsync);

// Flushes the names in a folder. The files themselves are safe without this, so a file system that
// cannot or may not flush a folder, or a folder that this user may not read, causes one warning
// per process. kIo for other errors, as above.
void sync_folder(const std::string& path, int (*sync)(int) = ::fsync);

}  // namespace fleet
