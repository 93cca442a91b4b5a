#include "data/batch_slot.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace fleet::data {

namespace {

constexpr size_t kAlignment = 64;
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

size_t BatchSlot::image_bytes() const {
  const ImageShape& image = batch.image;
  return batch.pixels.empty() ? image.count() * sizeof(float)
                              : size_t(image.height) * image.width * bytes_a_pixel(image);
}

void BatchSlot::allocate(size_t bytes, const std::function<void*(size_t bytes)>& image_memory) {
  bytes_ = bytes;
  if (image_memory) {
    memory_ = image_memory(bytes);
  } else {
    owned_.reset(std::aligned_alloc(kAlignment, aligned(bytes)));
    memory_ = owned_.get();
  }
  if (!memory_) throw std::bad_alloc();
}

void BatchSlot::prepare_columns(const Layout& layout,
                                const std::function<void*(size_t bytes)>& image_memory) {
  size_t all = 0;
  for (const Column& column : layout.columns) all += aligned(layout.size * column.sample_bytes());
  allocate(all, image_memory);
  auto* at = static_cast<std::byte*>(memory_);
  for (const Column& column : layout.columns) {
    const size_t bytes = layout.size * column.sample_bytes();
    batch.columns.push_back({column, {at, bytes}});
    at += aligned(bytes);
  }
}

void BatchSlot::columns_at(int64_t i, std::vector<void*>* to) {
  to->clear();
  for (const BatchColumn& one : batch.columns) {
    to->push_back(one.data.data() + i * one.column.sample_bytes());
  }
}

void BatchSlot::clear_loss_weights(int64_t i) {
  for (const BatchColumn& one : batch.columns) {
    const size_t bytes = one.column.sample_bytes();
    if (one.column.loss_weight) std::memset(one.data.data() + i * bytes, 0, bytes);
  }
}

void BatchSlot::prepare(const Layout& layout,
                        const std::function<void*(size_t bytes)>& image_memory) {
  const int64_t size = layout.size;
  const ImageShape& image = layout.image;
  const bool bytes = layout.bytes;
  const int64_t items = size + (layout.mixes ? 1 : 0);
  labels.resize(items);
  samples.resize(items);
  weights.resize(items);
  keys.resize(items);
  batch.samples = std::span(samples).first(size);
  batch.weights = std::span(weights).first(size);
  batch.keys = std::span(keys).first(size);
  batch.size = size;
  loss_weights.assign(layout.columns.empty() ? 0 : size, 0);
  if (!layout.columns.empty()) return prepare_columns(layout, image_memory);
  const size_t one = bytes ? size_t(image.height) * image.width * bytes_a_pixel(image)
                           : image.count() * sizeof(float);
  const size_t all = static_cast<size_t>(size) * one;
  allocate(all, image_memory);
  if (layout.mixes) {
    before_.reset(std::aligned_alloc(64, (one + 63) / 64 * 64));
    if (!before_) throw std::bad_alloc();
    other_labels.resize(size);
    own_shares.resize(size, 1.0f);
    batch.other_labels = other_labels;
    batch.own_shares = own_shares;
  }
  if (bytes) {
    flips.resize(items);
    batch.pixels = {static_cast<uint8_t*>(memory_), all};
    batch.flips = std::span(flips).first(size);
  } else {
    batch.images = {static_cast<float*>(memory_), all / sizeof(float)};
  }
  batch.labels = std::span(labels).first(size);
  batch.image = image;
}

void* BatchSlot::image_at(int64_t i) {
  return i == batch.size ? before_.get() : static_cast<char*>(memory_) + i * image_bytes();
}

void BatchSlot::blacken(int64_t i) {
  if (!batch.pixels.empty()) flips[i] = 0;
  std::memset(image_at(i), 0, image_bytes());
}

void BatchSlot::mix(const BatchMix& mix, bool alone) {
  const int64_t size = batch.size;
  if (alone) {
    std::memcpy(before_.get(), image_at(size - 1), image_bytes());
    labels[size] = labels[size - 1];
  }
  if (batch.pixels.empty()) {
    mix_images(batch.images.data(), size, static_cast<const float*>(before_.get()), batch.image,
               mix);
  } else {
    mix_images(batch.pixels.data(), size, static_cast<const uint8_t*>(before_.get()), batch.image,
               bytes_a_pixel(batch.image), mix);
  }
  for (int64_t i = 0; i < size; ++i) other_labels[i] = labels[i == 0 ? size : i - 1];
  std::fill(own_shares.begin(), own_shares.end(), mix.own);
}

void BatchSlot::blank(int64_t ignored_label) {
  std::memset(memory_, 0, bytes_);
  std::fill(flips.begin(), flips.end(), uint8_t{0});
  std::fill(labels.begin(), labels.end(), ignored_label);
  std::fill(other_labels.begin(), other_labels.end(), ignored_label);
  std::fill(own_shares.begin(), own_shares.end(), 1.0f);
  std::fill(weights.begin(), weights.end(), 0.0f);
  std::fill(class_weights.begin(), class_weights.end(), 0.0f);
  std::fill(samples.begin(), samples.end(), 0);
  std::fill(keys.begin(), keys.end(), 0);
  batch.real = 0;
  batch.weight = 0;
}

}  // namespace fleet::data
