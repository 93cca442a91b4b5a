// The images below a class folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fleet::data {

// Files with other endings than .jpg, .jpeg, .png, .webp, .bmp and .gif, by ending in lower case
// ("" for none): their number, and one example.
struct SkippedFiles {
  int64_t count = 0;
  std::string example;
};
using SkippedByExtension = std::map<std::string, SkippedFiles>;

// Entries of a class folder that are not images.
struct ClassFolderReport {
  SkippedByExtension left_out;
  SkippedFiles no_files;  // entries with an image name that are a broken link, a pipe or a device
};

// Visits the entries of a folder. kIo if it cannot be listed to its end.
void for_each_entry(const std::string& folder,
                    const std::function<void(const std::filesystem::directory_entry&)>& visit);

bool is_image_name(const std::string& name);

// The paths of the images in the folder and its subfolders, in the order of torchvision's
// ImageFolder: folders sorted by path, files within each by name. Follows links; enters each folder
// once. Skips hidden files and folders. Adds other entries to *notes. An entry with an image name
// that is not a file is both noted and returned. kIo if a folder cannot be listed.
std::vector<std::string> images_below(const std::string& folder, ClassFolderReport* notes);

// ".tiff (12, such as a/b.tiff), .txt (1, such as a/c.txt)"; known image formats first.
std::string text_of(const SkippedByExtension& left_out);

}  // namespace fleet::data
