#include "data/batch_slot.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace fleet::data {

size_t BatchSlot::image_bytes() const {
  const ImageShape& image = batch.image;
  return batch.pixels.empty() ? image.count() * sizeof(float)
                              : size_t(image.height) * image.width * bytes_a_pixel(image);
}

void BatchSlot::prepare(int64_t size, const ImageShape& image, bool bytes,
                        const std::function<void*(size_t bytes)>& image_memory) {
  labels.resize(size);
  samples.resize(size);
  weights.resize(size);
  keys.resize(size);
  const size_t one = bytes ? size_t(image.height) * image.width * bytes_a_pixel(image)
                           : image.count() * sizeof(float);
  const size_t all = static_cast<size_t>(size) * one;
  if (image_memory) {
    memory_ = image_memory(all);
  } else {
    owned_.reset(std::aligned_alloc(64, (all + 63) / 64 * 64));
    memory_ = owned_.get();
  }
  if (!memory_) throw std::bad_alloc();
  if (bytes) {
    flips.resize(size);
    batch.pixels = {static_cast<uint8_t*>(memory_), all};
    batch.flips = flips;
  } else {
    batch.images = {static_cast<float*>(memory_), all / sizeof(float)};
  }
  batch.labels = labels;
  batch.samples = samples;
  batch.weights = weights;
  batch.keys = keys;
  batch.size = size;
  batch.image = image;
}

void BatchSlot::blacken(int64_t i) {
  if (!batch.pixels.empty()) flips[i] = 0;
  std::memset(static_cast<char*>(memory_) + i * image_bytes(), 0, image_bytes());
}

void BatchSlot::blank(int64_t ignored_label) {
  std::memset(memory_, 0, static_cast<size_t>(batch.size) * image_bytes());
  std::fill(flips.begin(), flips.end(), uint8_t{0});
  std::fill(labels.begin(), labels.end(), ignored_label);
  std::fill(weights.begin(), weights.end(), 0.0f);
  std::fill(class_weights.begin(), class_weights.end(), 0.0f);
  std::fill(samples.begin(), samples.end(), 0);
  std::fill(keys.begin(), keys.end(), 0);
  batch.real = 0;
}

}  // namespace fleet::data
