#include "data/batch_slot.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace fleet::data {

namespace {

constexpr size_t kAlignment = 64;
size_t sample_bytes(const Column& column) {
  return static_cast<size_t>(column.shape.elements()) * size_of(column.dtype);
}

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

size_t BatchSlot::image_bytes() const {
  const ImageShape& image = batch.image;
  return batch.pixels.empty() ? image.count() * sizeof(float)
                              : size_t(image.height) * image.width * bytes_a_pixel(image);
}

void* BatchSlot::allocate(size_t bytes, const Allocate& image_memory,
                          std::unique_ptr<void, FreeMemory>* owned) {
  void* memory = nullptr;
  if (image_memory) {
    memory = image_memory(bytes);
  } else {
    owned->reset(std::aligned_alloc(kAlignment, aligned(bytes)));
    memory = owned->get();
  }
  if (!memory) throw std::bad_alloc();
  return memory;
}

void BatchSlot::prepare_columns(const Layout& layout, const Allocate& image_memory) {
  size_t all = 0;
  for (const Column& column : layout.columns) {
    const bool made = column.name == "image" || is_class_label(column);
    column_of_.push_back(made ? -1 : static_cast<int>(batch.columns.size()));
    if (made) continue;
    if (is_mask(column)) mask_ = column_of_.back();
    if (column.name == kLabelledPixels) labelled_ = column_of_.back();
    const size_t bytes = layout.size * sample_bytes(column);
    batch.columns.push_back({column.name, column.dtype, {static_cast<std::byte*>(nullptr), bytes}});
    all += aligned(bytes);
  }
  if (batch.columns.empty()) return;
  lengths_ = layout.lengths;
  if (!lengths_.empty()) columns_ = layout.columns;
  loss_weights.assign(layout.size, 0);
  auto* at = static_cast<std::byte*>(allocate(all, image_memory, &owned_columns_));
  for (BatchColumn& column : batch.columns) {
    column.data = {at, column.data.size()};
    at += aligned(column.data.size());
  }
}

void BatchSlot::set_length(int i) {
  if (lengths_.empty()) return;
  batch.length = lengths_[static_cast<size_t>(i)];
  const std::vector<Column> columns = at_length(columns_, batch.length);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (column_of_[c] < 0) continue;
    std::span<std::byte>& data = batch.columns[static_cast<size_t>(column_of_[c])].data;
    data = {data.data(), static_cast<size_t>(batch.size) * sample_bytes(columns[c])};
  }
}

std::vector<void*> BatchSlot::columns_at(int64_t i) {
  std::vector<void*> to;
  for (const int index : column_of_) {
    if (index < 0) {
      to.push_back(nullptr);
      continue;
    }
    const std::span<std::byte> data = batch.columns[index].data;
    to.push_back(data.data() + i * (data.size() / batch.size));
  }
  return to;
}

std::byte* BatchSlot::column_at(int index, int64_t i) {
  if (index < 0) return nullptr;
  const std::span<std::byte> data = batch.columns[static_cast<size_t>(index)].data;
  return data.data() + i * (static_cast<int64_t>(data.size()) / batch.size);
}

uint8_t* BatchSlot::mask_at(int64_t i) { return reinterpret_cast<uint8_t*>(column_at(mask_, i)); }

float* BatchSlot::labelled_pixels_at(int64_t i) {
  return reinterpret_cast<float*>(column_at(labelled_, i));
}

void BatchSlot::clear_mask(int64_t i) {
  if (mask_ < 0) return;
  const auto all = static_cast<int64_t>(batch.columns[static_cast<size_t>(mask_)].data.size());
  std::memset(mask_at(i), kUnlabelledPixel, static_cast<size_t>(all / batch.size));
  if (float* labelled = labelled_pixels_at(i)) *labelled = 0;
}

void BatchSlot::clear_loss_weights(int64_t i) {
  for (const BatchColumn& column : batch.columns) {
    if (column.name != "loss_weight") continue;
    const size_t bytes = column.data.size() / batch.size;
    std::memset(column.data.data() + i * bytes, 0, bytes);
  }
}

void BatchSlot::prepare(const Layout& layout, const Allocate& image_memory) {
  const int64_t size = layout.size, items = size + (layout.mixes ? 1 : 0);
  labels.resize(items);
  samples.resize(items);
  weights.resize(items);
  keys.resize(items);
  batch.samples = std::span(samples).first(size);
  batch.weights = std::span(weights).first(size);
  batch.keys = std::span(keys).first(size);
  batch.size = size;
  batch.denominator = batch.sample_denominator = static_cast<float>(size);
  prepare_columns(layout, image_memory);
  if (std::ranges::any_of(layout.columns, is_class_label)) {
    batch.labels = std::span(labels).first(size);
  }
  if (find_column(layout.columns, "image")) prepare_images(layout, image_memory);
}

void BatchSlot::prepare_images(const Layout& layout, const Allocate& image_memory) {
  const int64_t size = layout.size;
  const ImageShape& image = layout.image;
  const size_t one = layout.bytes ? size_t(image.height) * image.width * bytes_a_pixel(image)
                                  : image.count() * sizeof(float);
  const size_t all = static_cast<size_t>(size) * one;
  memory_ = allocate(all, image_memory, &owned_);
  if (layout.mixes) {
    before_.reset(std::aligned_alloc(kAlignment, aligned(one)));
    if (!before_) throw std::bad_alloc();
    other_labels.resize(size);
    own_shares.resize(size, 1.0f);
    batch.other_labels = other_labels;
    batch.own_shares = own_shares;
  }
  if (layout.bytes) {
    flips.resize(size + (layout.mixes ? 1 : 0));
    batch.pixels = {static_cast<uint8_t*>(memory_), all};
    batch.flips = std::span(flips).first(size);
  } else {
    batch.images = {static_cast<float*>(memory_), all / sizeof(float)};
  }
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
  if (memory_) std::memset(memory_, 0, static_cast<size_t>(batch.size) * image_bytes());
  for (const BatchColumn& column : batch.columns) {
    std::memset(column.data.data(), 0, column.data.size());
  }
  for (int64_t i = 0; i < batch.size; ++i) clear_mask(i);
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
