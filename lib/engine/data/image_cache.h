// Decoded images in memory (data.cache). Internal to data.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "data/decode.h"

namespace fleet::data {

// Keeps images until it is full; nothing is ever replaced, so that a found image stays valid. All
// methods may be called from any thread.
class ImageCache {
 public:
  // samples: number in the source. bytes: the memory that images may take.
  ImageCache(int64_t samples, size_t bytes);
  ~ImageCache();
  ImageCache(const ImageCache&) = delete;

  // The whole image of a sample, or null.
  const Pixels* find(int64_t sample) const;
  // Copies a whole image, of `channels` (1 or 3) channels, unless the cache is full. Returns false
  // if it is, for the first time.
  bool insert(int64_t sample, const Pixels& pixels, int channels);

  int64_t images() const { return images_; }
  size_t bytes() const { return used_; }

 private:
  struct Image {
    Pixels pixels;
    std::unique_ptr<uint8_t[]> bytes;
  };
  const size_t limit_;
  std::vector<std::atomic<const Image*>> images_by_sample_;
  std::atomic<size_t> used_{0};
  std::atomic<int64_t> images_{0};
  std::atomic<bool> full_{false};
};

}  // namespace fleet::data
