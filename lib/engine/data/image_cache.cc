#include "data/image_cache.h"

#include <cstring>

namespace fleet::data {
namespace {

constexpr size_t kBehind = 64;  // readable behind an image, as Pixels requires

// Copies rows of pixels of 1, 3 or 4 bytes to rows of 1 or 3.
void copy_rows(const Pixels& from, int channels, uint8_t* to) {
  const size_t row = size_t(from.width) * channels;
  for (int y = 0; y < from.height; ++y, to += row) {
    const uint8_t* line = from.data + y * from.stride;
    if (from.step == channels) {
      std::memcpy(to, line, row);
      continue;
    }
    for (int x = 0; x < from.width; ++x) {
      for (int c = 0; c < channels; ++c) to[x * channels + c] = line[x * from.step + c];
    }
  }
}

}  // namespace

ImageCache::ImageCache(int64_t samples, size_t bytes)
    : limit_(bytes), images_by_sample_(static_cast<size_t>(samples)) {}

ImageCache::~ImageCache() {
  for (auto& image : images_by_sample_) delete image.load();
}

const Pixels* ImageCache::find(int64_t sample) const {
  const Image* image = images_by_sample_[sample].load(std::memory_order_acquire);
  return image ? &image->pixels : nullptr;
}

bool ImageCache::insert(int64_t sample, const Pixels& pixels, int channels) {
  if (full_) return true;
  const size_t bytes = size_t(pixels.width) * pixels.height * channels + kBehind;
  const size_t taken = bytes + sizeof(Image);
  if (used_.fetch_add(taken) + taken > limit_) {
    used_ -= taken;
    return full_.exchange(true);
  }
  auto image = std::make_unique<Image>();
  image->bytes = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  std::memset(image->bytes.get() + bytes - kBehind, 0, kBehind);
  copy_rows(pixels, channels, image->bytes.get());
  image->pixels = {.data = image->bytes.get(),
                   .step = channels,
                   .stride = int64_t{pixels.width} * channels,
                   .width = pixels.width,
                   .height = pixels.height};
  const Image* expected = nullptr;
  if (images_by_sample_[sample].compare_exchange_strong(expected, image.get())) {
    (void)image.release();
    ++images_;
  } else {
    used_ -= taken;  // another thread was faster
  }
  return true;
}

}  // namespace fleet::data
