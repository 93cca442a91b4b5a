// Several views of each image: mirrored, or cut at other places, for predictions that average over
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/augment.h"
#include "data/source.h"

namespace fleet::data {

// Another view of the image that an evaluation prepares: with the crop in a corner of the resized
// image, and mirrored.
struct ImageView {
  enum class Place { kUnchanged, kTopLeft, kTopRight, kBottomLeft, kBottomRight, kCentre };
  Place place = Place::kUnchanged;
  bool flip = false;
};

// The views of predict.average, in torchvision's order: "none": one; "flip": the image and its
// mirror image; "five_crop": the corners top left, top right, bottom left, bottom right, and the
// centre (FiveCrop); "ten_crop": these, and their mirror images (TenCrop).
std::vector<ImageView> image_views(const std::string& average);

// Changes the geometry of an image that lies within its resized image.
void apply(const ImageView& view, CropGeometry* geometry);

// Each sample of another source once for each view, in a row.
class ViewedSource : public Source {
 public:
  // At least one view.
  ViewedSource(std::unique_ptr<Source> source, std::vector<ImageView> views);
  int64_t size() const override;
  std::vector<Column> columns() const override { return source_->columns(); }
  Sample read(int64_t index, std::vector<uint8_t>& scratch) const override;
  Sample read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const override;
  std::string name(int64_t index) const override;

  const ImageView& view(int64_t index) const;

 private:
  int64_t sample(int64_t index) const;

  const std::unique_ptr<Source> source_;
  const std::vector<ImageView> views_;
};

}  // namespace fleet::data
