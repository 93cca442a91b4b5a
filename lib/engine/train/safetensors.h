// Tensors in a file of the safetensors format (https://github.com/huggingface/safetensors): eight
// bytes of header length, a JSON header with type, shape and position of each tensor, then the
// data, row-major, little-endian.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
  // Data owned by `owner`.
  TensorBytes(std::shared_ptr<char[]> owner, char* data, size_t size)
      : memory_(std::move(owner)), data_(data), size_(size) {}
  // A view of memory owned by someone else, which must outlive it.
  static TensorBytes view(const void* data, size_t size) {
    return {nullptr, const_cast<char*>(static_cast<const char*>(data)), size};
  }
  char* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<char> span() const { return {data_, size_}; }

 private:
  std::shared_ptr<char[]> memory_;
  char* data_ = nullptr;
  size_t size_ = 0;
};

struct HostTensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  TensorBytes data;
  std::optional<Layout> layout = std::nullopt;  // the data's; nullopt: row-major
  std::function<TensorBytes()> load = nullptr;  // reads the values, if `data` does not hold them
  TensorBytes values() const { return load ? load() : data; }
};

struct TensorFile {
  std::map<std::string, HostTensor> tensors;
  std::map<std::string, std::string> metadata;
  // Tensors of types that no parameter has, such as "BOOL" or "F8_E4M3": name and type. Their
  // values are not read.
  std::map<std::string, std::string> foreign = {};
};

// A file whose content is damaged: truncated, or with flipped bits. kUsage.
class DamagedFile : public Error {
 public:
  DamagedFile(const std::string& what, const std::string& path, const std::string& next)
      : Error(ErrorCode::kUsage, what, path, next) {}
};

enum class Checksum { kIfThere, kRequired };

// Writes a temporary file, syncs and renames it. The metadata contains a checksum: "crc32c", eight
// hexadecimal digits, over the whole file with zeros in their place. Values with a layout are
// converted to row-major. kIo.
void write_safetensors(const std::string& path, const TensorFile& file);
// DamagedFile naming the path if the file is truncated, is not a safetensors file, or does not
// match its checksum. Returns the metadata that write_safetensors() was given. kNotFound or kIo if
// it cannot be read.
TensorFile read_safetensors(const std::string& path, Checksum checksum = Checksum::kIfThere);
// The same, but values are read when they are needed (HostTensor::load), so that the file need not
// fit into memory. The checksum is compared now.
TensorFile open_safetensors(const std::string& path, Checksum checksum = Checksum::kIfThere);

}  // namespace fleet
