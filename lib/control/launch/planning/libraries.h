// Finds the libraries for training on GPUs without loading them.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// The folders that the dynamic loader searches, as far as files show: `search` (LD_LIBRARY_PATH),
// /etc/ld.so.conf, and the usual ones. `root` is the prefix of /etc.
std::vector<std::string> library_folders(const std::string& search, const std::string& root = {});

// The real path of "libnccl.so.2" in the first of these folders that has it; "" if none has.
std::string find_library(const std::string& name, const std::vector<std::string>& folders);

// "2.28.9" for a path that ends with .so.2.28.9; "" if the name has fewer parts than a.b.
std::string version_in_name(const std::string& path);

}  // namespace fleet
