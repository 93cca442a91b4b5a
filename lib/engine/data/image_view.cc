#include "data/image_view.h"

#include <iterator>
#include <utility>

#include "base/error.h"

namespace fleet::data {

using Place = ImageView::Place;

std::vector<ImageView> image_views(const std::string& average) {
  if (average == "none") return {{}};
  if (average == "flip") return {{}, {.flip = true}};
  FLEET_CHECK(average == "five_crop" || average == "ten_crop", average);
  std::vector<ImageView> views;
  for (const bool flip : {false, true}) {
    if (flip && average == "five_crop") break;
    for (const Place place : {Place::kTopLeft, Place::kTopRight, Place::kBottomLeft,
                              Place::kBottomRight, Place::kCentre}) {
      views.push_back({place, flip});
    }
  }
  return views;
}

void apply(const ImageView& view, CropGeometry* geometry) {
  CropGeometry& p = *geometry;
  // TenCrop mirrors the image before it cuts it. So a mirrored corner lies on the other side.
  p.flip ^= view.flip;
  if (view.place == Place::kUnchanged || p.resized_height == 0) return;
  const bool right = view.place == Place::kTopRight || view.place == Place::kBottomRight;
  const bool bottom = view.place == Place::kBottomLeft || view.place == Place::kBottomRight;
  const int spare = p.resized_width - p.out_width;
  if (view.place == Place::kCentre) {  // it is there already
    if (view.flip) p.resized_x = spare - p.resized_x;
  } else {
    p.resized_x = right != view.flip ? spare : 0;
    p.resized_y = bottom ? p.resized_height - p.out_height : 0;
  }
  p.x = p.resized_x * (double(p.source_width) / p.resized_width);
  p.y = p.resized_y * (double(p.source_height) / p.resized_height);
}

ViewedSource::ViewedSource(std::unique_ptr<Source> source, std::vector<ImageView> views)
    : source_(std::move(source)), views_(std::move(views)) {}

int64_t ViewedSource::size() const { return source_->size() * std::ssize(views_); }

int64_t ViewedSource::sample(int64_t index) const { return index / std::ssize(views_); }

const ImageView& ViewedSource::view(int64_t index) const {
  return views_[static_cast<size_t>(index % std::ssize(views_))];
}

Sample ViewedSource::read(int64_t index, std::vector<uint8_t>& scratch) const {
  return source_->read(sample(index), scratch);
}

Sample ViewedSource::read_start(int64_t index, size_t bytes, std::vector<uint8_t>& scratch) const {
  return source_->read_start(sample(index), bytes, scratch);
}

std::string ViewedSource::name(int64_t index) const { return source_->name(sample(index)); }

}  // namespace fleet::data
