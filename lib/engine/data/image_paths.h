// Unlabelled images named by the user.
#pragma once

#include <string>
#include <vector>

namespace fleet::data {

// The images named by these arguments, in this order. For a folder: the images in it and in its
// subfolders, folders sorted by path, files within each by name. For a list (a name that ends in
// .txt, .lst or .list): its lines, "path" or "path label", relative to the list's folder. Else the
// path itself, whether or not the file exists. kUsage if a folder has no image, or nothing is
// given; kIo, kNotFound if a list or folder cannot be read.
std::vector<std::string> image_paths(const std::vector<std::string>& named);

}  // namespace fleet::data
