// Where the libraries of a GPU's training are, without loading them.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// The folders that the loader looks into, as far as files tell: `search` (LD_LIBRARY_PATH), those
// of /etc/ld.so.conf, and the usual ones. `root` is before /etc.
std::vector<std::string> library_folders(const std::string& search, const std::string& root = {});

// The file that "libnccl.so.2" means in the first of these folders that has it; "" in none.
std::string find_library(const std::string& name, const std::vector<std::string>& folders);

// "2.28.9" of a path that ends with .so.2.28.9; "" where the name says less than a.b.
std::string version_in_name(const std::string& path);

}  // namespace fleet
