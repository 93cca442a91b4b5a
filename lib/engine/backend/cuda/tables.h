// Tables for kernels over many tensors, in device memory, written once when the kernel is created.
// For .cu files.
#pragma once

#include <vector>

#include "backend/cuda/types.h"
#include "exec/kernel.h"

namespace fleet::cuda {

// An array on the device that lives as long as a copy of this object.
template <typename T>
class Table {
 public:
  Table(Device& device, const std::vector<T>& entries)
      : size_(static_cast<int64_t>(entries.size())),
        memory_(device.allocate(entries.size() * sizeof(T))) {
    const auto stream = device.make_stream("");
    device.copy(memory_.data(), entries.data(), entries.size() * sizeof(T), *stream);
    stream->synchronize();
  }
  const T* data() const { return static_cast<const T*>(memory_.data()); }
  int64_t size() const { return size_; }

 private:
  int64_t size_;
  Buffer memory_;
};

// A piece of one of several tensors: the work of one block.
struct Chunk {
  int32_t tensor, count;
  int64_t begin;
};
inline constexpr int64_t kChunk = 8192;  // maximum number of elements; a multiple of every pack

inline int64_t chunks_of(int64_t elements) { return ceil_div(elements, kChunk); }

inline void append_chunks(std::vector<Chunk>& chunks, int32_t tensor, int64_t elements) {
  for (int64_t begin = 0; begin < elements; begin += kChunk) {
    chunks.push_back({tensor, static_cast<int32_t>(std::min(kChunk, elements - begin)), begin});
  }
}

}  // namespace fleet::cuda
