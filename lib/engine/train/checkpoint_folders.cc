#include "train/checkpoint_folders.h"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <set>

#include "base/error.h"
#include "base/file_status.h"
#include "base/number_text.h"
#include "base/text.h"
#include "train/run_folder.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

// The checkpoint that this one needs; "": none, or its state cannot be read.
std::string needed_by(const std::string& folder) {
  try {
    StateFacts facts;
    parse_state(folder + "/" + kStateFile, &facts);
    return facts.needs;
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::string name_of_step(int64_t step) {
  return format_printf("step_%08lld", static_cast<long long>(step));
}

std::vector<std::string> all_checkpoints(const std::string& root) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    long long step = 0;
    if (entry.is_directory() && name.starts_with("step_") && parse_int(name.substr(5), &step)) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found, {}, step_of_checkpoint);  // not by name: it may have more digits
  return found;
}

void check_needed(const std::string& folder, const StateFacts& facts) {
  if (facts.needs.empty()) return;
  const std::string needed = (fs::path(folder + "/..") / facts.needs).lexically_normal().string();
  if (path_exists(needed + "/" + kStateFile)) return;
  throw DamagedFile(
      "it has the changes of tables since another checkpoint, which is missing: " + needed, folder,
      "put that back, or use an older checkpoint");
}

void remove_old_checkpoints(const std::string& root, int64_t step, const Keep& keep) {
  if (keep.newest <= 0) return;
  std::vector<std::string> old;  // oldest first
  std::set<std::string> needed;
  for (const std::string& folder : all_checkpoints(root)) {
    const int64_t of = step_of_checkpoint(folder);
    if (of > step || of == keep.also_step) {
      needed.insert(needed_by(folder));
    } else {
      old.push_back(folder);
    }
  }
  const auto newest = static_cast<size_t>(keep.newest);
  const size_t kept = old.size() - std::min(newest, old.size());
  for (size_t i = kept; i < old.size(); ++i) needed.insert(needed_by(old[i]));
  old.resize(kept);
  // A needed checkpoint may need others.
  for (const std::string& folder : old | std::views::reverse) {
    if (needed.contains(fs::path(folder).filename().string())) {
      needed.insert(needed_by(folder));
    } else {
      std::error_code ignored;
      fs::remove_all(folder, ignored);
    }
  }
}

std::optional<std::string> set_checkpoints_aside(const std::string& root) {
  if (all_checkpoints(root).empty()) return std::nullopt;
  return set_aside(root);
}

std::string folder_of_step(const std::string& root, int64_t step) {
  return root + "/" + name_of_step(step);
}

int64_t step_of_checkpoint(const std::string& folder) {
  long long step = -1;
  const std::string name = fs::path(folder).filename();
  if (name.starts_with("step_")) parse_int(name.substr(5), &step);
  return step;
}

std::optional<std::string> latest_checkpoint(const std::string& root, int64_t below) {
  std::vector<std::string> all = all_checkpoints(root);
  std::erase_if(all, [&](const auto& folder) { return step_of_checkpoint(folder) >= below; });
  if (all.empty()) return std::nullopt;
  return all.back();
}

static void check_complete(const std::string& folder) {
  StateFacts facts;
  parse_state(folder + "/" + kStateFile, &facts);
  check_needed(folder, facts);
  for (const char* file : {kModelFile, kOptimizerFile, kAverageFile}) {
    const std::string path = folder + "/" + file;
    if (path_exists(path)) {
      open_safetensors(path);
    } else if (file != kAverageFile) {
      throw DamagedFile("the file does not exist", path, "use a complete checkpoint");
    }
  }
}

std::optional<std::string> newest_complete_checkpoint(const std::string& root) {
  for (auto folder = latest_checkpoint(root); folder;
       folder = latest_checkpoint(root, step_of_checkpoint(*folder))) {
    try {
      check_complete(*folder);
      return folder;
    } catch (const DamagedFile&) {  // the caller wants an older one
    }
  }
  return std::nullopt;
}

}  // namespace fleet
