// Replacing a folder by another one.
#pragma once

#include <string>

namespace fleet {

// renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)
int rename_exchange(const char* one, const char* other);

// Exchanges two folders of one file system: atomically, or by three renames where the file system,
// such as NFS, cannot. kIo: nothing has changed, or, if the last of three renames failed, `other`
// is new. `exchange`: rename_exchange(); tests replace it.
void exchange_folders(const std::string& one, const std::string& other,
                      int (*exchange)(const char*, const char*) = rename_exchange);

}  // namespace fleet
