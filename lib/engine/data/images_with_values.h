// Images with numbers. Internal to data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/image_files.h"

namespace fleet::data {

// The column "targets" has the numbers of an image to predict. If they are shares of classes,
// "label_shares" has them, and "label" the class with the largest share.
class ImagesWithValues : public ImageFiles {
 public:
  // values: those of the first file come first; each file has the same number.
  ImagesWithValues(std::vector<ImageFile> files, std::vector<float> values, bool shares,
                   std::vector<std::string> names)
      : ImageFiles(std::move(files), shares ? std::move(names) : std::vector<std::string>()),
        values_(std::move(values)),
        shares_(shares) {}

  static std::vector<Column> columns_of(int64_t count, bool shares) {
    std::vector<Column> columns = labelled_images();
    if (!shares) columns.pop_back();
    columns.push_back({shares ? "label_shares" : "targets", DType::kFloat32, {count}});
    return columns;
  }
  std::vector<Column> columns() const override { return columns_of(count(), shares_); }

  void fill(int64_t index, uint64_t /*key*/, std::span<void* const> to) const override {
    std::copy_n(values_.begin() + index * count(), count(), static_cast<float*>(to.back()));
  }

 private:
  int64_t count() const { return std::ssize(values_) / size(); }

  std::vector<float> values_;
  bool shares_;
};

}  // namespace fleet::data
