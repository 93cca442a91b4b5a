// A text file that lists images, one "path label" per line.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/image_files.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

// Missing files are detected at the start, so that a job does not fail hours later. In longer lists
// only this many evenly spaced lines are checked, because each check takes a while on a network
// file system.
constexpr size_t kFilesChecked = 100000;

ImageFile parse_line(std::string_view line, const SourceContext& context,
                     const std::string& where) {
  const size_t blank = line.find_last_of(" \t");
  long long label = 0;
  if (blank == std::string_view::npos || !parse_int(line.substr(blank + 1), &label)) {
    throw Error(ErrorCode::kUsage, "'" + shown_name(line, 200) + "' is not \"path label\"", where,
                "write the image's path, a blank and its class as a number from 0");
  }
  check_label(label, context, where);
  return {under_root(context.root, std::string(trim(line.substr(0, blank)))), label};
}

// Whether the path leads through an ignored folder below data.root, or names a file that macOS
// stores next to another ("._1.jpg"). In other absolute paths hidden folders count: an image set
// may lie in one.
bool is_ignored(std::string_view path, const std::string& root) {
  if (path.substr(path.rfind('/') + 1).starts_with("._")) return true;
  if (!root.empty() && path.starts_with(under_root(root, ""))) {
    path.remove_prefix(under_root(root, "").size());
  }
  if (!path.starts_with('/')) return in_ignored_folder(path);
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    if (name != path && !name.starts_with('.') && is_ignored_folder(name)) return true;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return false;
}

// Also stores the line numbers, for messages.
std::vector<ImageFile> parse(const std::string& list, const SourceContext& context,
                             std::vector<int64_t>* numbers) {
  std::vector<ImageFile> files;
  SkippedFiles ignored;
  int64_t number = 0;
  for_each_line(list, [&](std::string_view given) {
    const std::string_view line = trim(given);
    ++number;
    if (line.empty()) return;
    ImageFile file = parse_line(line, context, list + ":" + std::to_string(number));
    if (is_ignored(file.path, context.root)) {
      if (ignored.count++ == 0) ignored.example = shown_path(file.path);
      return;
    }
    files.push_back(std::move(file));
    numbers->push_back(number);
  });
  const std::string left_out = images_text(ignored.count) +
                               " in hidden or system folders left out, such as " + ignored.example;
  if (files.empty() && ignored.count == 0) {
    throw Error(ErrorCode::kUsage, "the list contains no image", list,
                "write \"path label\" lines");
  }
  if (files.empty()) {
    throw Error(ErrorCode::kUsage, left_out, list,
                "set data.root to that folder if the images of the list belong there");
  }
  if (context.verbose && ignored.count > 0) spdlog::warn("{}: {}", shown_path(list), left_out);
  return files;
}

std::unique_ptr<Source> open_image_list(const Settings& split, const SourceContext& context) {
  std::string list = split.text("list");
  if (list.empty()) return no_test_data(context, "data.test.list");
  std::error_code ignored;  // such as a name that is too long
  if (!fs::exists(list, ignored)) {
    check_answer(ignored.value(), list);
    list = under_root(context.root, list);
  }
  if (!fs::exists(list, ignored)) {
    check_answer(ignored.value(), list);
    throw Error(ErrorCode::kUsage, "the list file does not exist", split.text("list"),
                std::string("set ") + (context.train ? "data.train.list" : "data.test.list") +
                    " to its path, or relative to data.root");
  }
  SourceContext in_list_folder = context;
  if (context.root.empty()) in_list_folder.root = fs::path(list).parent_path().string();
  std::vector<int64_t> numbers;
  std::vector<ImageFile> files = parse(list, in_list_folder, &numbers);
  const size_t step = files.size() / kFilesChecked + 1;
  for (size_t i = 0; i < files.size(); i += step) {
    struct stat status {};
    const bool exists = ::stat(files[i].path.c_str(), &status) == 0;
    if (exists && S_ISREG(status.st_mode)) continue;
    if (!exists) check_answer(errno, files[i].path);
    throw Error(ErrorCode::kUsage,
                "the file '" + shown_path(files[i].path) + "' " +
                    (!exists                   ? "does not exist"
                     : S_ISDIR(status.st_mode) ? "is a folder"
                                               : "is not a regular file"),
                list + ":" + std::to_string(numbers[i]), "correct the line, or set data.root");
  }
  return std::make_unique<ImageFiles>(std::move(files));
}

}  // namespace
FLEET_SOURCE(image_list) {
  def.schema = [](bool) {
    return Schema()
        .text("list", "",
              "Text file with \"path label\" lines; paths are relative to data.root, or to the "
              "list's folder if that is not set")
        .as_path();
  };
  def.names_data = [](const Settings& split) { return !split.text("list").empty(); };
  def.open = open_image_list;
}

}  // namespace fleet::data
