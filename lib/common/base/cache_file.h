// Files that fleetrun keeps between runs because they cost time to make, and that may be deleted.
#pragma once

#include <string>

namespace fleet {

// The path of a file in $XDG_CACHE_HOME/fleetrun or ~/.cache/fleetrun; "" if neither variable is
// set. Characters of the name other than letters, digits, '.' and '-' become '_'. Creates nothing.
std::string cache_file(std::string name);

}  // namespace fleet
