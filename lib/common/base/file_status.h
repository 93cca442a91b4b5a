// The kind of file at a path. Unlike std::filesystem's functions these throw an Error that names
// it.
#pragma once

#include <string>

namespace fleet {

// Symbolic links are followed; a broken one counts as nothing. kIo with the reason if the system
// does not tell: a folder that this user may not search, for example.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

}  // namespace fleet
