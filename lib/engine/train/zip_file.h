// Reads entries of a zip that are stored uncompressed, as torch.save() writes them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/regular_file.h"
#include "train/safetensors.h"

namespace fleet {

// Not thread-safe.
class ZipFile {
 public:
  // DamagedFile if the file is not a zip.
  explicit ZipFile(const std::string& path);
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;

  // The name of the first entry with this ending; nullopt if absent.
  std::optional<std::string> find(const std::string& ending) const;
  // The bytes of an entry, after checking its checksum. DamagedFile if it is missing, is cut off,
  // compressed or encrypted, or has more than `most` bytes.
  TensorBytes read(const std::string& name, uint64_t most);

 private:
  void list();
  [[noreturn]] void bad(const std::string& what) const;

  const std::string path_;
  RegularFile file_;
  void* zip_ = nullptr;
  struct Position {
    uint64_t in_directory = 0, number = 0;
  };
  std::map<std::string, Position> entries_;
};

}  // namespace fleet
