#include "launch/planning/debug_placeholder.h"

#include <filesystem>

namespace fleet {

std::vector<std::string> placeholder_command(const std::vector<std::string>& command) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> all = {self, "debug", kPlaceholderFlag, "--"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

}  // namespace fleet
