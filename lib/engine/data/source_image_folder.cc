// A folder with one subfolder of image files per class; images may be in deeper subfolders. Labels
// number the class folders by name, as in torchvision's ImageFolder.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/image_files.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

std::string key_of(bool train) { return train ? "data.train.folder" : "data.test.folder"; }

// The folders next to a missing one that may hold its images.
std::vector<std::string> folders_beside(const std::string& missing) {
  std::vector<std::string> found;
  const fs::path parent = fs::path(missing).parent_path();
  for (const char* name : {"val", "valid", "validation", "eval", "test", "Test", "Val"}) {
    const std::string path = parent / name;
    std::error_code unknown;
    if (path != missing && fs::is_directory(path, unknown)) found.push_back(path);
  }
  return found;
}

[[noreturn]] void refuse_missing(const std::string& folder, bool train) {
  std::string next = "set data.root or " + key_of(train);
  if (!train) {
    const std::vector<std::string> beside = folders_beside(folder);
    if (!beside.empty()) next += " (there is " + shown_path(beside.front()) + ")";
    next += ", or data.validation_split; without an evaluation, set " + key_of(train) + " to \"\"";
  }
  throw Error(ErrorCode::kUsage,
              path_exists(folder) ? "it is not a folder" : "the folder does not exist", folder,
              next);
}

// Images and ignored folders next to the class folders.
struct BesideClasses {
  int64_t images = 0;
  IgnoredFolders ignored;
};

// The class folders sorted by name, without ignored ones.
std::vector<std::string> classes_in(const std::string& folder, bool train, BesideClasses* beside) {
  if (!is_folder(folder)) refuse_missing(folder, train);
  std::vector<std::string> classes;
  for_each_entry(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    std::error_code unknown;
    const bool is_directory = entry.is_directory(unknown);
    if (is_directory && is_ignored_folder(name)) {
      add_ignored_folder(entry.path(), &beside->ignored);
    } else if (is_directory) {
      classes.push_back(name);
    } else if (!name.starts_with('.') && is_image_name(name)) {
      beside->images += 1;
    }
  });
  std::sort(classes.begin(), classes.end());
  if (classes.empty()) {
    throw Error(ErrorCode::kUsage, "it has no class folders", folder,
                "put the images of each class into a separate folder");
  }
  return classes;
}

// The first names of a list that may be long.
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(shown_name(name));
  return join_first(shown, kShown);
}

// Refuses classes that cannot be learned or tested for lack of images.
void check_empty(const std::vector<std::string>& empty, const std::string& folder,
                 const std::string& others, const SourceContext& context) {
  if (empty.empty()) return;
  const std::string what = "class folders without an image (" + std::string(kImageEndings) +
                           "): " + some(empty) + (others.empty() ? "" : "; other files: " + others);
  if (context.train) {
    throw Error(ErrorCode::kUsage, what, folder, "put images into them, or remove them");
  }
  if (context.verbose) spdlog::warn("{}: {}", shown_path(folder), what);
}

// The class folders that are likely to be too many: those without an image, or else those that the
// test images lack; or else all.
std::string folders_too_many(const std::vector<std::string>& classes, const std::string& folder) {
  const auto without = [&](const auto& has) {
    std::vector<std::string> names;
    std::copy_if(classes.begin(), classes.end(), std::back_inserter(names),
                 [&](const std::string& name) { return !has(name); });
    return names;
  };
  const auto empty = without([&](const std::string& name) {
    ClassFolderReport notes;
    return !images_below(folder + "/" + name, &notes).empty();
  });
  if (!empty.empty()) return "without an image: " + some(empty);
  for (const std::string& other : folders_beside(folder)) {
    std::error_code unknown;
    const auto missing = without(
        [&](const std::string& name) { return fs::is_directory(other + "/" + name, unknown); });
    if (missing.empty() || missing.size() == classes.size()) continue;
    return "not in " + shown_path(other) + ": " + some(missing);
  }
  return some(classes);
}

[[noreturn]] void refuse_more_folders(const std::vector<std::string>& classes,
                                      const std::string& folder, int64_t model_classes) {
  throw Error(ErrorCode::kUsage,
              std::to_string(classes.size()) + " class folders (" +
                  folders_too_many(classes, folder) + "), and the model has " +
                  std::to_string(model_classes) + " classes",
              folder,
              "remove folders that hold no class, or set model.num_classes to " +
                  std::to_string(classes.size()));
}

// Hidden folders without images go without saying.
void report_ignored(const std::string& folder, const IgnoredFolders& ignored) {
  if (ignored.images == 0 && ignored.of_system == 0) return;
  spdlog::log(ignored.images > 0 ? spdlog::level::warn : spdlog::level::info, "{}: left out: {}",
              shown_path(folder), text_of(ignored));
}

void warn_skipped_files(const std::string& folder, const std::string& others,
                        int64_t unclassified) {
  if (!others.empty()) {
    spdlog::warn("{}: only JPEG, PNG, WebP, BMP, GIF and TIFF files are read; skipped: {}",
                 shown_path(folder), others);
  }
  if (unclassified > 0) {
    spdlog::warn("{}: {} outside class folders skipped", shown_path(folder),
                 images_text(unclassified));
  }
}

// As for lists: a job must not fail after hours because of an error that was visible at its start.
void check_files(const SkippedFiles& no_files, const std::string& folder,
                 const SourceContext& context) {
  if (no_files.count == 0) return;
  const std::string what = "images that are not files (a broken link, a pipe, a device): " +
                           std::to_string(no_files.count) + ", such as " +
                           shown_path(no_files.example);
  if (!context.replaces_damaged) {
    throw Error(ErrorCode::kUsage, what, folder, "remove them, or set data.on_damaged to skip");
  }
  if (context.verbose) spdlog::warn("{}: {}; other images replace them", shown_path(folder), what);
}

std::unique_ptr<Source> open_image_folder(const Settings& split, const SourceContext& context) {
  const std::string key = key_of(context.train);
  if (split.text("folder").empty()) return no_test_data(context, key);
  const std::string folder = under_root(context.root, split.text("folder"));
  if (!context.train && !split.given("folder") && !path_exists(folder)) {
    return no_test_data(context, key, " (" + shown_path(folder) + " does not exist)",
                        folders_beside(folder));
  }
  BesideClasses beside, of_training;
  const auto there = classes_in(folder, context.train, &beside);
  // A class may be missing from the test images: the labels are the same as in training.
  auto classes = there;
  if (context.train_split && !context.train_split->text("folder").empty()) {
    classes = classes_in(under_root(context.root, context.train_split->text("folder")), true,
                         &of_training);
  }
  if (context.classes > 0 && static_cast<int64_t>(classes.size()) > context.classes) {
    refuse_more_folders(classes, folder, context.classes);
  }
  std::vector<ImageFile> files;
  std::vector<std::string> empty;
  ClassFolderReport notes{.ignored = beside.ignored, .left_out = {}, .no_files = {}};
  for (const std::string& name : there) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      throw Error(ErrorCode::kUsage,
                  "the class '" + shown_name(name) + "' is not among the training classes", folder,
                  suggestion(name, classes));
    }
    const size_t before = files.size();
    for (std::string& path : images_below(folder + "/" + name, &notes)) {
      files.push_back({std::move(path), found - classes.begin()});
    }
    if (files.size() == before) empty.push_back(name);
  }
  const std::string others = text_of(notes.left_out);
  if (files.empty()) {
    throw Error(ErrorCode::kUsage,
                "its class folders contain no image (" + std::string(kImageEndings) + ")" +
                    (others.empty() ? "" : ", but " + others),
                folder);
  }
  check_empty(empty, folder, others, context);
  check_files(notes.no_files, folder, context);
  if (context.verbose) {
    report_ignored(folder, notes.ignored);
    warn_skipped_files(folder, others, beside.images);
  }
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(shown_path(name));
  return std::make_unique<ImageFiles>(std::move(files), std::move(names));
}

}  // namespace
FLEET_SOURCE(image_folder) {
  def.schema = [](bool train) {
    return Schema()
        .text("folder", train ? "train" : "test",
              "Folder with one subfolder per class; images may be in deeper subfolders; relative "
              "to data.root")
        .as_path();
  };
  def.names_data = [](const Settings& split) { return !split.text("folder").empty(); };
  def.open = open_image_folder;
}

}  // namespace fleet::data
