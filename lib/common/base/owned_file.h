// Opens files in folders where other users may have placed something harmful: a link to a file of
// this user, a pipe, or a file of their own.
//
// This user and root are trusted, and the owner of a folder for its entries, as with the kernel's
// fs.protected_symlinks. Any other user could have created an entry in a world-writable folder
// (/tmp). All functions are thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace fleet {

// Opens the folder as an O_PATH descriptor; follows links in its path. kNotFound if it does not
// exist, kIo if it cannot be reached. kUsage if an untrusted user created it or a link on the way
// to it: the message names the entry and its owner.
UniqueFd open_owned_folder(const std::string& path);

// `flags` as of open(2), without O_TRUNC and O_EXCL. Checks the folder as above; never follows a
// link at the file itself, which must be a regular file of a trusted user. kUsage if it is
// something else, kNotFound or kIo if it cannot be opened.
UniqueFd open_owned_file(const std::string& path, int flags, mode_t mode = 0644);

// Throws what open_owned_file(path, O_WRONLY) would throw for the first of `paths` that it refuses,
// without opening the files. Files and folders that do not exist pass. Cheapest if files of one
// folder follow each other.
void check_owned_files(const std::vector<std::string>& paths);

// Replaces the content in place; readers may see a part of it. Not synced. Errors as
// open_owned_file(), and kIo if the content cannot be written completely.
void write_owned_file(const std::string& path, std::string_view content, mode_t mode = 0644);

struct ReplaceOptions {
  mode_t mode = 0644;
  bool sync = true;  // flush to the disk
};
// write_file_atomically() in a folder that is checked as above. Replaces any existing entry of that
// name, including a link; never writes through a link.
void replace_owned_file(const std::string& path, std::string_view content,
                        const ReplaceOptions& options = {});

// Like the above, in the open folder, for the file named by the last part of `path`. kIo.
void replace_file(int folder, const std::string& path, std::string_view content,
                  const ReplaceOptions& options);

// Writes all of `content`. kIo naming the path.
void write_all(int file, std::string_view content, const std::string& path);

// "user 'name'", or "uid 1001" if the system has no name for it.
std::string name_of_user(uid_t user);

}  // namespace fleet
