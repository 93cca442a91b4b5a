// Images without labels, as users name them.
#pragma once

#include <string>
#include <vector>

namespace fleet::data {

// The images that these name, in this order: of a folder those in it and in the folders below,
// folder by folder by path, within each by name; of a list (a name that ends in .txt, .lst or
// .list) its lines, "path" or "path label", relative to the list's folder; else the path itself,
// whether or not there is such a file. kUsage where a folder has no image, or nothing is named;
// kIo, kNotFound where a list or folder cannot be read.
std::vector<std::string> image_paths(const std::vector<std::string>& named);

}  // namespace fleet::data
