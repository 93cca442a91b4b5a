// Tensors in a file in the safetensors format (https://github.com/huggingface/safetensors): eight
// bytes of header length, a JSON header with type, shape and place of each tensor, then the data,
// row-major, little-endian.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
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

// A file that is not what was written: truncated, or with bits that flipped. kUsage.
class DamagedFile : public Error {
 public:
  DamagedFile(const std::string& what, const std::string& path, const std::string& next)
      : Error(ErrorCode::kUsage, what, path, next) {}
};

enum class Checksum { kIfThere, kRequired };

// Written aside, synced and renamed, with a checksum in its metadata: "crc32c", eight hexadecimal
// digits, of the whole file as it is with zeros in their place. kIo.
void write_safetensors(const std::string& path, const TensorFile& file);
// DamagedFile naming the path where it is truncated, not such a file, or not as its checksum says.
// The metadata is what write_safetensors() was given.
TensorFile read_safetensors(const std::string& path, Checksum checksum = Checksum::kIfThere);

}  // namespace fleet
