// The images below a class folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fleet::data {

// Files that are none of .jpg, .jpeg, .png, .webp, .bmp and .gif, by their ending in lower case (""
// for none): how many, and one of them.
struct LeftOut {
  int64_t count = 0;
  std::string example;
};
using LeftOutByEnding = std::map<std::string, LeftOut>;

// What lies beside the images in a class folder.
struct ClassFolderNotes {
  LeftOutByEnding left_out;
  LeftOut no_files;  // images by name that are a broken link, a pipe or a device
};

bool is_image_name(const std::string& name);

// The paths of the images in the folder and in the folders below, in the order of torchvision's
// ImageFolder: folder by folder by path, within each by name. Links are followed, each folder is
// entered once. Hidden files and folders are skipped. What else is there is added to *notes; what
// has an image's name and is no file is among the paths too. kIo where a folder cannot be listed.
std::vector<std::string> images_below(const std::string& folder, ClassFolderNotes* notes);

// ".tiff (12, such as a/b.tiff), .txt (1, such as a/c.txt)"; known image formats first.
std::string text_of(const LeftOutByEnding& left_out);

}  // namespace fleet::data
