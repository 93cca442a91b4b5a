// Tensors in a file in the safetensors format (https://github.com/huggingface/safetensors): eight
// bytes of header length, a JSON header with type, shape and place of each tensor, then the data,
// row-major, little-endian.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace fleet {

struct HostTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<char> data;  // row-major
};

struct TensorFile {
  std::map<std::string, HostTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Written aside, synced and renamed. kIo.
void write_safetensors(const std::string& path, const TensorFile& file);
// kUsage naming the path where it is truncated or not such a file.
TensorFile read_safetensors(const std::string& path);

}  // namespace fleet
