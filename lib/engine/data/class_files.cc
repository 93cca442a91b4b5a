#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/image_files.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const std::string& name) {
  return lower_case(fs::path(name).extension().string());
}

// Image formats that this library does not read.
bool is_other_image(const std::string& ending) {
  static const std::set<std::string> endings = {".ppm",  ".pgm",  ".jp2", ".avif",
                                                ".heic", ".heif", ".jxl"};
  return endings.contains(ending);
}

class Walk {
 public:
  explicit Walk(ClassFolderReport* notes) : notes_(*notes) {}

  void enter(const std::string& folder) {
    if (!enter_once(folder)) return;
    std::vector<std::string> names, folders;
    for_each_entry(folder, [&](const fs::directory_entry& entry) {
      const std::string name = entry.path().filename();
      std::error_code unknown;  // for a dangling link: counts as an unreadable file
      const bool is_folder = entry.is_directory(unknown);
      if (is_folder && is_ignored_folder(name)) {
        add_ignored_folder(entry.path(), &notes_.ignored);
      } else if (name.starts_with('.')) {
        return;
      } else if (is_folder) {
        folders.push_back(entry.path());
      } else if (is_image_name(name)) {
        names.push_back(name);
        if (!entry.is_regular_file(unknown)) count(entry.path(), &notes_.no_files);
      } else {
        count(entry.path(), &notes_.left_out[ending_of(name)]);
      }
    });
    std::sort(names.begin(), names.end());
    by_folder_.emplace_back(folder, std::move(names));
    // In an order that does not depend on the disk: of several names of one folder, the first
    // counts.
    std::sort(folders.begin(), folders.end());
    for (const std::string& one : folders) enter(one);
  }

  std::vector<std::string> take() {
    std::sort(by_folder_.begin(), by_folder_.end());
    std::vector<std::string> paths;
    for (const auto& [folder, names] : by_folder_) {
      for (const std::string& name : names) paths.push_back(folder + "/" + name);
    }
    return paths;
  }

 private:
  static void count(const std::string& path, SkippedFiles* left_out) {
    if (left_out->count++ == 0) left_out->example = path;
  }

  bool enter_once(const std::string& folder) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return true;  // listing it reports the reason
    return entered_.emplace(status.st_dev, status.st_ino).second;
  }

  ClassFolderReport& notes_;
  std::set<std::pair<dev_t, ino_t>> entered_;
  std::vector<std::pair<std::string, std::vector<std::string>>> by_folder_;
};

}  // namespace

void for_each_entry(const std::string& folder,
                    const std::function<void(const fs::directory_entry&)>& visit) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    visit(*entry);
  }
  if (error) throw SystemError(ErrorCode::kIo, "cannot be listed", error.value(), folder);
}

bool is_image_name(const std::string& name) {
  static const std::set<std::string> endings = {".jpg", ".jpeg", ".png", ".webp",
                                                ".bmp", ".gif",  ".tif", ".tiff"};
  return endings.contains(ending_of(name));
}

bool is_ignored_folder(std::string_view name) {
  // Synology, QNAP; Windows; archives of macOS, and its folders on a server; Linux.
  static const std::set<std::string> names = {"@eadir",
                                              "#recycle",
                                              "#snapshot",
                                              "@recycle",
                                              "@__thumb",
                                              "@tmp",
                                              "$recycle.bin",
                                              "@recently-snapshot",
                                              "__macosx",
                                              "lost+found",
                                              "temporary items",
                                              "network trash folder",
                                              "system volume information"};
  return name.starts_with('.') || names.contains(lower_case(name));
}

bool in_ignored_folder(std::string_view path) {
  for (size_t slash; (slash = path.find('/')) != std::string_view::npos;) {
    const std::string_view name = path.substr(0, slash);
    if (name != "." && name != ".." && is_ignored_folder(name)) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

void add_ignored_folder(const std::string& path, IgnoredFolders* ignored) {
  int64_t images = 0;
  std::error_code error;  // lost+found belongs to root
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (is_image_name(entry->path().filename()) && !entry->is_directory(unknown)) ++images;
  }
  if (ignored->folders == 0 || (ignored->images == 0 && images > 0)) ignored->example = path;
  ignored->folders += 1;
  ignored->images += images;
  if (!fs::path(path).filename().string().starts_with('.')) ignored->of_system += 1;
}

std::string images_text(int64_t count) {
  return count == 1 ? "1 image" : std::to_string(count) + " images";
}

std::string text_of(const IgnoredFolders& ignored) {
  return (ignored.folders == 1 ? "1 folder" : std::to_string(ignored.folders) + " folders") +
         " (hidden, or of the system), such as " + shown_path(ignored.example) + ", with " +
         images_text(ignored.images);
}

std::vector<std::string> images_below(const std::string& folder, ClassFolderReport* notes) {
  Walk walk(notes);
  walk.enter(folder);
  return walk.take();
}

std::string text_of(const SkippedByExtension& left_out) {
  std::string images, others;
  for (const auto& [ending, files] : left_out) {
    std::string& text = is_other_image(ending) ? images : others;
    text += (text.empty() ? "" : ", ") +
            (ending.empty() ? "without extension" : shown_name(ending)) + " (" +
            std::to_string(files.count) + ", such as " + shown_path(files.example) + ")";
  }
  return images + (images.empty() || others.empty() ? "" : ", ") + others;
}

}  // namespace fleet::data
