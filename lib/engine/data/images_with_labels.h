// Image files with several labels each, for the task multi_label. Internal to data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/image_files.h"

namespace fleet::data {

struct LabelledFiles {
  std::vector<ImageFile> files;
  std::vector<int64_t> labels;  // labels of all files, one after the other
  std::vector<size_t> begins;   // where the labels of each file begin, and the end
};

// The column "targets" has 1 for each class that the image shows, and 0 for the others.
class ImagesWithLabels : public ImageFiles {
 public:
  ImagesWithLabels(LabelledFiles all, int64_t classes, std::vector<std::string> names = {})
      : ImageFiles(std::move(all.files), std::move(names)),
        labels_(std::move(all.labels)),
        begins_(std::move(all.begins)),
        classes_(classes) {}

  static std::vector<Column> columns_of(int64_t classes) {
    return {{.name = "image", .dtype = DType::kUInt8, .ragged = true},
            {.name = "targets", .dtype = DType::kFloat32, .shape = {classes}}};
  }
  std::vector<Column> columns() const override { return columns_of(classes_); }

  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    float* targets = static_cast<float*>(to[1]);
    std::fill_n(targets, classes_, 0.0f);
    for (size_t i = begins_[index]; i < begins_[index + 1]; ++i) targets[labels_[i]] = 1;
  }

 private:
  std::vector<int64_t> labels_;
  std::vector<size_t> begins_;
  int64_t classes_;
};

}  // namespace fleet::data
