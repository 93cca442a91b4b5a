// The kind of file at a path. Unlike std::filesystem's functions these throw an Error that names
// it.
#pragma once

#include <sys/types.h>

#include <string>

namespace fleet {

// Symbolic links are followed; a broken one counts as nothing. kIo with the reason if the system
// does not tell: a folder that this user may not search, for example.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);
// The kind of a file that is not regular, by its mode (stat(2)): "a folder", "a pipe".
const char* kind_of_file(mode_t mode);

}  // namespace fleet
