#include "data/packed_image.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "data/encode_image.h"
#include "data/storage.h"

namespace fleet::data {
namespace {

// The sides of an image whose shorter one becomes `size`, as torchvision's Resize(size); unchanged
// if it is not larger.
std::pair<int, int> resized(int height, int width, int64_t size) {
  const int64_t shorter = std::min(height, width);
  if (size == 0 || shorter <= size) return {height, width};
  const auto side = [&](int64_t given) { return static_cast<int>(size * given / shorter); };
  return {side(height), side(width)};
}

}  // namespace

// Rounds to bytes, height x width x channels.
void PackedImageMaker::resize_pixels(const Pixels& pixels) {
  std::tie(height_, width_) = resized(pixels.height, pixels.width, options_.size);
  CropGeometry geometry = whole_image(pixels.height, pixels.width);
  geometry.out_height = height_;
  geometry.out_width = width_;
  const size_t plane = size_t(height_) * width_;
  planes_.resize(plane * channels_);
  const std::vector<float> scale(channels_, 1.0f), bias(channels_, 0.0f);
  if (is_copy(geometry)) {
    copy_pixels(pixels, geometry, channels_, scale.data(), bias.data(), planes_.data());
  } else {
    resizer_.run(pixels, geometry, channels_, scale.data(), bias.data(), planes_.data());
  }
  pixels_.resize(plane * channels_);
  for (int c = 0; c < channels_; ++c) {
    for (size_t i = 0; i < plane; ++i) {
      // Never negative, and lround() does not vectorize.
      // NOLINTNEXTLINE(bugprone-incorrect-roundings)
      const float value = std::clamp(planes_[c * plane + i], 0.0f, 255.0f) + 0.5f;
      pixels_[i * channels_ + c] = static_cast<uint8_t>(value);
    }
  }
}

// All pixels of the sample; valid until the next one is read. kIo if it is damaged.
Pixels PackedImageMaker::pixels_of(const Sample& sample) {
  if (!sample.encoded) {
    FLEET_CHECK(sample.channels == channels_, "images with different channels");
    return {.data = sample.bytes.data(),
            .step = sample.channels,
            .stride = int64_t{sample.width} * sample.channels,
            .width = sample.width,
            .height = sample.height};
  }
  Pixels pixels;
  if (!decoder_.open(sample.bytes, channels_)) throw Error(ErrorCode::kIo, decoder_.why());
  const int height = decoder_.height(), width = decoder_.width();
  if (!decoder_.read(whole_image(height, width), &pixels)) {
    throw Error(ErrorCode::kIo, decoder_.why());
  }
  return pixels;
}

PackWriter::Record PackedImageMaker::make(int64_t index) {
  name_ = source_.name(index);
  PackWriter::Record record{
      .bytes = {}, .name = name_, .label = source_.label(index), .kind = PackedKind::kDamaged};
  try {
    const Sample sample = read_patiently(source_, index, scratch_);
    // Decoded in any case, so that damage is found now.
    const Pixels pixels = pixels_of(sample);
    const bool small = options_.size == 0 || std::min(pixels.height, pixels.width) <= options_.size;
    if (sample.encoded && !options_.raw && small) {  // kept byte by byte
      record.kind = PackedKind::kFile;
      record.bytes = {reinterpret_cast<const char*>(sample.bytes.data()), sample.bytes.size()};
      return record;
    }
    resize_pixels(pixels);
    if (options_.raw || (!sample.encoded && small)) {  // pixels that nothing changes stay exact
      record.kind = PackedKind::kPixels;
      record.bytes = {reinterpret_cast<const char*>(pixels_.data()), pixels_.size()};
      record.height = height_;
      record.width = width_;
      record.channels = channels_;
      return record;
    }
    bytes_ = encode_jpeg(pixels_, height_, width_, channels_, options_.quality);
    record.kind = PackedKind::kFile;
    record.bytes = bytes_;
  } catch (const Error& error) {
    why_ = error.failure();
    record.kind = PackedKind::kDamaged;
    record.bytes = why_;
  }
  return record;
}

}  // namespace fleet::data
