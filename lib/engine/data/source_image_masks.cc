// Images with a class of each pixel: a folder with images, and one with masks of the same names,
// PNG files of class numbers. 255 is no class.
#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/counted.h"
#include "base/error.h"
#include "base/file_status.h"
#include "base/regular_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "data/image_files.h"
#include "data/mask_maker.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

std::vector<Column> mask_columns() {
  return {{.name = "image", .dtype = DType::kUInt8, .ragged = true},
          {.name = "mask", .dtype = DType::kUInt8, .ragged = true},
          {.name = kLabelledPixels, .dtype = DType::kFloat32}};
}

class ImagesWithMasks : public ImageFiles {
 public:
  ImagesWithMasks(std::vector<ImageFile> images, std::vector<ImageFile> masks, int64_t classes)
      : ImageFiles(std::move(images)),
        checked_(masks.size()),
        masks_(std::move(masks)),
        classes_(classes) {}

  std::vector<Column> columns() const override { return mask_columns(); }
  // The pipeline writes masks, and the rest.
  void fill(int64_t, uint64_t, std::span<void* const>) const override {}
  MaskFile read_mask(int64_t index, std::vector<uint8_t>& scratch) const override {
    return {.bytes = masks_.read(index, scratch).bytes,
            .name = masks_.name(index),
            .classes = classes_,
            .checked = &checked_[static_cast<size_t>(index)]};
  }

 private:
  mutable std::vector<std::atomic<bool>> checked_;  // by sample; for all readers
  const ImageFiles masks_;
  const int64_t classes_;
};

struct Folders {
  std::string images, masks;
};

std::string key_of(bool train) { return train ? "data.train.folder" : "data.test.folder"; }

// The folder of a split: the one that is set, or the usual one; "": there are no test data.
std::string folder_of(const Settings& split, const SourceContext& context) {
  const std::string folder = under_root(context.root, split.text("folder"));
  if (split.given("folder") || is_folder(folder)) return folder;
  if (!context.train) {
    for (const char* name : {"val", "validation", "valid"}) {
      const std::string other = under_root(context.root, name);
      if (is_folder(other)) return other;
    }
    return "";
  }
  const std::string root = context.root.empty() ? "." : context.root;
  return is_folder(under_root(root, split.text("images"))) ? root : folder;
}

Folders folders_of(const Settings& split, const std::string& folder, bool train) {
  Folders all{under_root(folder, split.text("images")), under_root(folder, split.text("masks"))};
  for (const std::string& one : {all.images, all.masks}) {
    if (is_folder(one)) continue;
    throw Error(ErrorCode::kUsage, "the folder does not exist", one,
                "put images and masks into two folders, and set data.root or " + key_of(train));
  }
  return all;
}

// The images below a folder, by their path in it without an ending.
std::map<std::string, std::string> by_stem(const std::string& folder, bool masks) {
  ClassFolderReport notes;
  std::map<std::string, std::string> files;
  for (const std::string& path : images_below(folder, &notes)) {
    const fs::path own(path);
    if (masks && own.extension() != ".png" && own.extension() != ".PNG") {
      throw Error(ErrorCode::kUsage, "the mask is not a PNG file", path,
                  "store the class of each pixel as a PNG of 8 bits");
    }
    const std::string stem = own.lexically_relative(folder).replace_extension().generic_string();
    const auto [at, added] = files.emplace(stem, path);
    if (added) continue;
    throw Error(ErrorCode::kUsage, "two files have the name " + shown_name(stem), at->second,
                "remove one of them, or name it otherwise: masks are found by the name");
  }
  return files;
}

// kUsage for a file of `own` without one of `others`.
void check_pairs(const std::map<std::string, std::string>& own,
                 const std::map<std::string, std::string>& others, const std::string& kind,
                 const std::string& what, const std::string& next) {
  std::vector<std::string> alone;
  for (const auto& [stem, path] : own) {
    if (!others.contains(stem)) alone.push_back(path);
  }
  if (alone.empty()) return;
  throw Error(ErrorCode::kUsage, counted(std::ssize(alone), kind) + what, alone.front(), next);
}

std::unique_ptr<Source> open_masks(const Settings& split, const SourceContext& context) {
  if (split.text("folder").empty()) return no_test_data(context, key_of(context.train));
  const std::string folder = folder_of(split, context);
  if (folder.empty()) return no_test_data(context, key_of(context.train));
  if (context.classes > kMostPixelClasses) {
    throw Error(ErrorCode::kUsage, "a mask of bytes has at most 255 classes", "model.num_classes",
                "set it to at most 255");
  }
  const Folders folders = folders_of(split, folder, context.train);
  const auto images = by_stem(folders.images, false), masks = by_stem(folders.masks, true);
  if (images.empty()) {
    throw Error(ErrorCode::kUsage, "it contains no image (" + std::string(kImageEndings) + ")",
                folders.images, "set data.root or " + key_of(context.train));
  }
  check_pairs(images, masks, "image", " without a mask of the same name, such as this one",
              "add its mask to " + folders.masks + ", or remove the image");
  check_pairs(masks, images, "mask", " without an image of the same name, such as this one",
              "add its image to " + folders.images + ", or remove the mask");
  std::vector<ImageFile> files, labels;
  for (const auto& [stem, path] : images) {
    files.push_back({path, 0});
    labels.push_back({masks.at(stem), 0});
  }
  const int64_t classes = context.classes > 0 ? context.classes : kMostPixelClasses;
  return std::make_unique<ImagesWithMasks>(std::move(files), std::move(labels), classes);
}

}  // namespace

FLEET_SOURCE(image_masks) {
  def.schema = [](bool train) {
    return Schema()
        .text("folder", train ? "train" : "test",
              "Folder with a folder of images and one of masks; relative to data.root, which may "
              "have them itself if there are no test data")
        .as_path()
        .text("images", "images", "Folder of images in it; images may be in deeper subfolders")
        .text("masks", "masks",
              "Folder of masks in it: a PNG for each image, of the same name and size, with the "
              "class of each pixel (as palette or in grey), 255 where there is none");
  };
  def.names_data = [](const Settings& split) { return !split.text("folder").empty(); };
  def.columns = [](const Settings&, const SourceContext&) { return mask_columns(); };
  def.has_classes = true;
  def.open = open_masks;
}

}  // namespace fleet::data
