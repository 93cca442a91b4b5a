// A folder with a folder of JPEG and PNG files for each class. Labels number the class folders by
// name.
#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "data/image_files.h"

namespace fleet::data {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  std::string extension = path.extension();
  std::transform(extension.begin(), extension.end(), extension.begin(), ::tolower);
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::string key_of(bool train) { return train ? "data.train.folder" : "data.test.folder"; }

// The folder's entries of one kind, sorted by name. Hidden ones are left out.
template <typename Wanted>
std::vector<std::string> names_in(const std::string& folder, Wanted wanted) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with('.') && wanted(entry)) names.push_back(name);
  }
  if (error) throw Error(ErrorCode::kIo, "cannot be listed: " + error.message(), folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> classes_in(const std::string& folder, bool train) {
  if (!fs::is_directory(folder)) {
    throw Error(ErrorCode::kUsage, "there is no such folder", folder,
                "set data.root or " + key_of(train));
  }
  auto classes = names_in(folder, [](const auto& entry) { return entry.is_directory(); });
  if (classes.empty()) {
    throw Error(ErrorCode::kUsage, "it has no class folders", folder,
                "put each class's images into a folder of their own");
  }
  return classes;
}

Schema schema(bool train) {
  Schema schema;
  schema.text("folder", train ? "train" : "test",
              "Folder with a folder of JPEG and PNG files for each class; relative to data.root");
  return schema;
}

std::unique_ptr<Source> open(const Settings& split, const SourceContext& context) {
  if (split.text("folder").empty()) return nullptr;
  const std::string folder = under_root(context.root, split.text("folder"));
  const auto there = classes_in(folder, context.train);
  // A class may be missing from the test images: labels are those of training.
  auto classes = there;
  if (context.train_split && !context.train_split->text("folder").empty()) {
    classes = classes_in(under_root(context.root, context.train_split->text("folder")), true);
  }
  if (context.classes > 0 && static_cast<int64_t>(classes.size()) > context.classes) {
    throw Error(ErrorCode::kUsage,
                std::to_string(classes.size()) + " class folders, and the model has " +
                    std::to_string(context.classes) + " classes",
                folder, "give the model as many classes, or remove folders");
  }
  std::vector<ImageFile> files;
  for (const std::string& name : there) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      throw Error(ErrorCode::kUsage, "the class '" + name + "' is not among the training classes",
                  folder, suggestion(name, classes));
    }
    const std::string inside = folder + "/" + name;
    for (const std::string& file :
         names_in(inside, [](const auto& entry) { return is_image(entry.path()); })) {
      files.push_back({inside + "/" + file, found - classes.begin()});
    }
  }
  if (files.empty()) {
    throw Error(ErrorCode::kUsage, "its class folders hold no .jpg, .jpeg or .png file", folder);
  }
  return std::make_unique<ImageFiles>(std::move(files));
}

}  // namespace
}  // namespace fleet::data

FLEET_REGISTER_SOURCE("image_folder", fleet::data::schema, fleet::data::open)
