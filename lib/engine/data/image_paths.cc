#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/image_files.h"
#include "data/source.h"
#include "data/storage.h"
#include "data/table_file.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

bool is_list(const std::string& path) {
  const std::string ending = fs::path(path).extension();
  return ending == ".txt" || ending == ".lst" || ending == ".list";
}

// A list may contain labels, which are not needed here; a path may also end in a number.
std::string path_of(std::string_view line, const std::string& folder) {
  const std::string whole = under_root(folder, std::string(line));
  const size_t blank = line.find_last_of(" \t");
  long long label = 0;
  std::error_code unknown;
  if (blank == std::string_view::npos || !parse_int(line.substr(blank + 1), &label) ||
      fs::exists(whole, unknown)) {
    return whole;
  }
  return under_root(folder, std::string(trim(line.substr(0, blank))));
}

void add_list(const std::string& list, std::vector<std::string>* paths) {
  const std::string folder = fs::path(list).parent_path().string();
  const size_t before = paths->size();
  for_each_line(list, [&](std::string_view given) {
    const std::string_view line = trim(given);
    if (!line.empty()) paths->push_back(path_of(line, folder));
  });
  if (paths->size() > before) return;
  throw Error(ErrorCode::kUsage, "the list contains no image", list, "write a path on each line");
}

void add_folder(const std::string& folder, bool verbose, std::vector<std::string>* paths) {
  ClassFolderReport notes;
  const std::string plain = folder.size() > 1 && folder.ends_with('/')
                                ? folder.substr(0, folder.find_last_not_of('/') + 1)
                                : folder;
  std::vector<std::string> found = images_below(plain.empty() ? "/" : plain, &notes);
  if (found.empty()) {
    const std::string others = text_of(notes.left_out);
    throw Error(ErrorCode::kUsage,
                "the folder contains no image" + (others.empty() ? "" : ", but " + others), folder,
                "give a folder with images");
  }
  paths->insert(paths->end(), found.begin(), found.end());
  if (verbose && notes.ignored.images > 0) {
    spdlog::warn("{}: left out: {}", shown_path(folder), text_of(notes.ignored));
  }
}

}  // namespace

std::vector<std::string> image_paths(const std::vector<std::string>& named, bool verbose) {
  std::vector<std::string> paths;
  std::error_code unknown;
  const auto exists = [&](const std::string& path) {
    const bool found = fs::exists(path, unknown);
    if (!found) check_answer(unknown.value(), path);
    return found;
  };
  if (!named.empty() && std::none_of(named.begin(), named.end(), exists)) {
    throw Error(ErrorCode::kUsage, "there is no such file or folder", named[0],
                "give images, folders or lists that exist");
  }
  for (const std::string& path : named) {
    if (fs::is_directory(path, unknown)) {
      add_folder(path, verbose, &paths);
    } else if (is_list(path)) {
      add_list(path, &paths);
    } else if (is_table_name(path)) {
      throw Error(ErrorCode::kUsage, "a table names no images to predict", path,
                  "give a folder, or a list (.txt) with a path on each line");
    } else {
      paths.push_back(path);
    }
  }
  if (paths.empty()) {
    throw Error(ErrorCode::kUsage, "no image is given", "predict.input",
                "give images, folders or lists: --predict PATH");
  }
  return paths;
}

}  // namespace fleet::data
