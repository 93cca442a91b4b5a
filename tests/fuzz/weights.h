// Properties of tensors that were read from a file.
#pragma once

#include "tests/fuzz/fuzz.h"
#include "train/safetensors.h"

namespace fleet::fuzz {

// The shape makes sense, and all bytes of the values are there.
inline void check_tensors(const TensorFile& file) {
  unsigned sum = 0;
  for (const auto& [name, tensor] : file.tensors) {
    uint64_t count = 1;
    for (const int64_t size : tensor.shape) {
      require(size >= 0, "a dimension is not negative");
      require(size == 0 || count <= (uint64_t{1} << 62) / static_cast<uint64_t>(size),
              "a tensor's size is a number");
      count *= static_cast<uint64_t>(size);
    }
    require(tensor.data.size() == count * size_of(tensor.dtype), "a tensor has all of its values");
    for (size_t i = 0; i < tensor.data.size(); ++i) {
      sum += static_cast<unsigned char>(tensor.data.data()[i]);
    }
  }
  use(sum);
}

}  // namespace fleet::fuzz
