#include "train/unfinished_checkpoints.h"

#include <filesystem>
#include <system_error>
#include <vector>

namespace fleet {

namespace fs = std::filesystem;

void remove_unfinished_checkpoints(const std::string& root) {
  std::vector<fs::path> unfinished;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("step_") && name.ends_with(".part")) unfinished.push_back(entry.path());
  }
  for (const fs::path& folder : unfinished) fs::remove_all(folder, ignored);
}

}  // namespace fleet
