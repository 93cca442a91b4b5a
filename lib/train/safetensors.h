// Tensors in a file in the safetensors format (https://github.com/huggingface/safetensors): eight
// bytes of header length, a JSON header with type, shape and place of each tensor, then the data,
// row-major, little-endian.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/layout.h"
#include "tensor/shape.h"

namespace fleet {

// Memory of a tensor's values, aligned for their type; copies share it.
class TensorBytes {
 public:
  TensorBytes() = default;
  explicit TensorBytes(size_t size)  // not initialized
      : memory_(std::make_shared_for_overwrite<char[]>(size)), data_(memory_.get()), size_(size) {}
  TensorBytes(const std::vector<char>& bytes);
  // What `owner` holds.
  TensorBytes(std::shared_ptr<char[]> owner, char* data, size_t size)
      : memory_(std::move(owner)), data_(data), size_(size) {}
  // Of memory that somebody else keeps.
  static TensorBytes view(const void* data, size_t size) {
    return {nullptr, const_cast<char*>(static_cast<const char*>(data)), size};
  }
  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<char[]> memory_;
  char* data_ = nullptr;
  size_t size_ = 0;
};

struct HostTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  TensorBytes data;
  std::optional<Layout> layout = std::nullopt;  // of the data; row-major where there is none
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
// digits, of the whole file as it is with zeros in their place. Values that have a layout become
// row-major on the way. kIo.
void write_safetensors(const std::string& path, const TensorFile& file);
// DamagedFile naming the path where it is truncated, not such a file, or not as its checksum says.
// The metadata is what write_safetensors() was given. kNotFound or kIo where it cannot be read.
TensorFile read_safetensors(const std::string& path, Checksum checksum = Checksum::kIfThere);

}  // namespace fleet
