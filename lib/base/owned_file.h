// Opens files in folders where other users may have put something in the way: a link to a file of
// this user's, a pipe, a file of their own.
//
// Trusted are this user, root, and the owner of a folder for what is in it, as with the kernel's
// fs.protected_symlinks. Everybody else could have made an entry of a folder that everyone may
// write (/tmp). All functions may be called from any thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace fleet {

// The folder as an O_PATH descriptor; links in its path are followed. kNotFound if it does not
// exist, kIo if it cannot be reached. kUsage if another user planted it, or a link on the way: the
// message names the entry and its owner.
UniqueFd open_owned_folder(const std::string& path);

// `flags` as of open(2), without O_TRUNC and O_EXCL. The folder is checked as above; the file
// itself is never reached through a link and must be a regular file of a trusted user. kUsage if it
// is something else, kNotFound or kIo if it cannot be opened.
UniqueFd open_owned_file(const std::string& path, int flags, mode_t mode = 0644);

// Throws what open_owned_file(path, O_WRONLY) would throw for the first of `paths` that it refuses,
// without opening the files. A file or folder that does not exist passes. Cheapest where files of
// one folder come one after another.
void check_owned_files(const std::vector<std::string>& paths);

// Replaces the content, in place; readers may see a part. Not synced. As open_owned_file(), and kIo
// if not all of it can be written.
void write_owned_file(const std::string& path, std::string_view content, mode_t mode = 0644);

struct ReplaceOptions {
  mode_t mode = 0644;
  bool sync = true;  // to the disk
};
// write_file_atomically() in a folder that is checked as above. Whatever has the name is replaced,
// a link too, and never written through.
void replace_owned_file(const std::string& path, std::string_view content,
                        const ReplaceOptions& options = {});

// The same in the open folder, for the file called as the last part of `path`. kIo.
void replace_file(int folder, const std::string& path, std::string_view content,
                  const ReplaceOptions& options);

// Writes all of it. kIo naming the path.
void write_all(int file, std::string_view content, const std::string& path);

// "user 'name'", or "uid 1001" if the system has no name for it.
std::string name_of_user(uid_t user);

}  // namespace fleet
