// Labelled image files on disk: the common part of the list and folder sources.
#pragma once

#include <string>
#include <vector>

#include "base/terminal_text.h"
#include "data/source.h"

namespace fleet::data {

struct ImageFile {
  std::string path;
  int64_t label = 0;
};

// Reads the bytes of the file into the scratch buffer. kIo, kNotFound or kUsage (not a regular
// file), naming the path; never blocks in these cases, unless the file system itself does not
// respond.
class ImageFiles : public Source {
 public:
  explicit ImageFiles(std::vector<ImageFile> files, std::vector<std::string> class_names = {})
      : files_(std::move(files)), class_names_(std::move(class_names)) {}
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  int64_t label(int64_t index) const override { return files_[index].label; }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override;
  std::string name(int64_t index) const override { return shown_path(files_[index].path); }
  std::vector<std::string> class_names() const override { return class_names_; }

 private:
  std::vector<ImageFile> files_;
  std::vector<std::string> class_names_;
};

}  // namespace fleet::data
