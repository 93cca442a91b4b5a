#include "base/program_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"

namespace fleet {

bool is_executable(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string find_on_path(const std::string& name) {
  for (const std::string& folder : split(env_or("PATH", "/usr/local/bin:/usr/bin:/bin"), ':')) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (is_executable(path)) return path;
  }
  return {};
}

}  // namespace fleet
