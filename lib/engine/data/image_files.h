// Image files on disk: finds them in folders and lists, and reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/terminal_text.h"
#include "data/source.h"

namespace fleet::data {

struct ImageFile {
  std::string path;
  int64_t label = 0;
};

// The common part of the list and folder sources. Reads the bytes of the file into the scratch
// buffer. kIo, kNotFound or kUsage (not a regular file), naming the path; never blocks in these
// cases, unless the file system itself does not respond.
class ImageFiles : public Source {
 public:
  explicit ImageFiles(std::vector<ImageFile> files, std::vector<std::string> class_names = {})
      : files_(std::move(files)), class_names_(std::move(class_names)) {}
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override { return files_[index].label; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override;
  Sample read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const override;
  std::string name(int64_t index) const override { return shown_path(files_[index].path); }
  std::vector<std::string> class_names() const override { return class_names_; }

 private:
  Sample read_up_to(int64_t index, int64_t bytes, std::vector<uint8_t>& scratch) const;

  std::vector<ImageFile> files_;
  std::vector<std::string> class_names_;
};

// For messages: what is_image_name() accepts.
inline constexpr const char* kImageEndings = ".jpg, .jpeg, .png, .webp, .bmp, .gif, .tif, .tiff";

// Files with other endings than those of kImageEndings, by ending in lower case
// ("" for none): their number, and one example.
struct SkippedFiles {
  int64_t count = 0;
  std::string example;
};
using SkippedByExtension = std::map<std::string, SkippedFiles>;

// Folders that are neither classes nor part of one, and the images in them.
struct IgnoredFolders {
  int64_t folders = 0, images = 0;
  int64_t of_system = 0;  // the folders that are not hidden
  std::string example;    // a folder, if possible one with images
};

// Entries of a class folder that are not images.
struct ClassFolderReport {
  IgnoredFolders ignored;
  SkippedByExtension left_out;
  SkippedFiles no_files;  // entries with an image name that are a broken link, a pipe or a device
};

// Visits the entries of a folder. kIo if it cannot be listed to its end.
void for_each_entry(const std::string& folder,
                    const std::function<void(const std::filesystem::directory_entry&)>& visit);

bool is_image_name(const std::string& name);

// Whether a folder of this name is hidden (begins with a dot), or belongs to an operating system, a
// network storage or an archiver: @eaDir with its thumbnails, $RECYCLE.BIN, __MACOSX, lost+found...
bool is_ignored_folder(std::string_view name);
// Whether one of the folders in a relative path is such a folder.
bool in_ignored_folder(std::string_view path);
// Adds an ignored folder, and the number of images in it. A part that cannot be listed counts as 0.
void add_ignored_folder(const std::string& path, IgnoredFolders* ignored);
// "2 folders (hidden, or of the system), such as a/@eaDir, with 3 images", for a message.
std::string text_of(const IgnoredFolders& ignored);
// "1 image", "2 images".
std::string images_text(int64_t count);

// The paths of the images in the folder and its subfolders, in the order of torchvision's
// ImageFolder: folders sorted by path, files within each by name. Follows links; enters each folder
// once. Skips hidden files. Adds ignored folders and other entries to *notes. An entry with an
// image name that is not a file is both noted and returned. kIo if a folder cannot be listed.
std::vector<std::string> images_below(const std::string& folder, ClassFolderReport* notes);

// ".ppm (12, such as a/b.ppm), .txt (1, such as a/c.txt)"; known image formats first.
std::string text_of(const SkippedByExtension& left_out);

// Calls body for each line of the file, without its newline. Never holds the whole file in memory.
// A binary file fails soon, because a line must not be longer than a path can be. kUsage, kIo,
// kNotFound naming the list.
void for_each_line(const std::string& list, const std::function<void(std::string_view)>& body);

// The images named by these arguments, in this order. For a folder: the images in it and in its
// subfolders, folders sorted by path, files within each by name. For a list (a name that ends in
// .txt, .lst or .list): its lines, "path" or "path label", relative to the list's folder. Else the
// path itself, whether or not the file exists. If verbose, a line counts the images in ignored
// folders. kUsage if a folder has no image, or nothing is given; kIo, kNotFound if a list or folder
// cannot be read.
std::vector<std::string> image_paths(const std::vector<std::string>& named, bool verbose = true);

}  // namespace fleet::data
