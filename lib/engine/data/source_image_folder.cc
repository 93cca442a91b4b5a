// A folder with one subfolder of image files per class; images may be in deeper subfolders. Labels
// number the class folders by name, as in torchvision's ImageFolder.
#include <algorithm>
#include <filesystem>
#include <span>

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

// The class folders sorted by name, without hidden ones. Sets *unclassified to the number of images
// outside class folders.
std::vector<std::string> classes_in(const std::string& folder, bool train, int64_t* unclassified) {
  if (!is_folder(folder)) {
    throw Error(ErrorCode::kUsage, "the folder does not exist", folder,
                "set data.root or " + key_of(train));
  }
  std::vector<std::string> classes;
  for_each_entry(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename();
    std::error_code unknown;
    if (name.starts_with('.')) return;
    if (entry.is_directory(unknown)) {
      classes.push_back(name);
    } else if (is_image_name(name)) {
      *unclassified += 1;
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
  const std::span<const std::string> all(shown);
  if (all.size() <= kShown) return join(all, ", ");
  return join(all.first(kShown), ", ") + " and " + std::to_string(all.size() - kShown) + " more";
}

// Refuses classes that cannot be learned or tested for lack of images.
void check_empty(const std::vector<std::string>& empty, const std::string& folder,
                 const std::string& others, const SourceContext& context) {
  if (empty.empty()) return;
  const std::string what =
      "class folders without an image (.jpg, .jpeg, .png, .webp, .bmp, .gif): " + some(empty) +
      (others.empty() ? "" : "; other files: " + others);
  if (context.train) {
    throw Error(ErrorCode::kUsage, what, folder, "put images into them, or remove them");
  }
  if (context.verbose) spdlog::warn("{}: {}", shown_path(folder), what);
}

void warn_skipped_files(const std::string& folder, const std::string& others,
                        int64_t unclassified) {
  if (!others.empty()) {
    spdlog::warn("{}: only JPEG, PNG, WebP, BMP and GIF files are read; skipped: {}",
                 shown_path(folder), others);
  }
  if (unclassified > 0) {
    spdlog::warn("{}: {} outside class folders skipped", shown_path(folder),
                 unclassified == 1 ? "1 image" : std::to_string(unclassified) + " images");
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

Schema image_folder_schema(bool train) {
  Schema schema;
  schema
      .text("folder", train ? "train" : "test",
            "Folder with one subfolder per class; images may be in deeper subfolders; relative "
            "to data.root")
      .as_path();
  return schema;
}

std::unique_ptr<Source> open_image_folder(const Settings& split, const SourceContext& context) {
  if (split.text("folder").empty()) return nullptr;
  const std::string folder = under_root(context.root, split.text("folder"));
  int64_t unclassified = 0, ignored = 0;
  const auto there = classes_in(folder, context.train, &unclassified);
  // A class may be missing from the test images: the labels are the same as in training.
  auto classes = there;
  if (context.train_split && !context.train_split->text("folder").empty()) {
    classes =
        classes_in(under_root(context.root, context.train_split->text("folder")), true, &ignored);
  }
  if (context.classes > 0 && static_cast<int64_t>(classes.size()) > context.classes) {
    throw Error(ErrorCode::kUsage,
                std::to_string(classes.size()) + " class folders, and the model has " +
                    std::to_string(context.classes) + " classes",
                folder, "set model.num_classes to that number, or remove folders");
  }
  std::vector<ImageFile> files;
  std::vector<std::string> empty;
  ClassFolderReport notes;
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
                "its class folders contain no image (.jpg, .jpeg, .png, .webp, .bmp, .gif)" +
                    (others.empty() ? "" : ", but " + others),
                folder);
  }
  check_empty(empty, folder, others, context);
  check_files(notes.no_files, folder, context);
  if (context.verbose) warn_skipped_files(folder, others, unclassified);
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(shown_path(name));
  return std::make_unique<ImageFiles>(std::move(files), std::move(names));
}

}  // namespace
FLEET_SOURCE(image_folder) {
  def.schema = image_folder_schema;
  def.open = open_image_folder;
}

}  // namespace fleet::data
